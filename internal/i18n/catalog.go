package i18n

// catalog are the tables of texts, each beside the room it serves, in a file named after
// it. They are not joined: each start would pay for that.
var catalog = []map[string]text{
	agentTexts,
	appTexts,
	approvalTexts,
	jobTexts,
	brokerTexts,
	budgetTexts,
	checkTexts,
	cliTexts,
	cloudTexts,
	configTexts,
	conversationTexts,
	webTexts,
	contextstoreTexts,
	doorTexts,
	folderTexts,
	githubTexts,
	hostedTexts,
	comparedTexts,
	effectsTexts,
	planViewTexts,
	evalTexts,
	imageTexts,
	inheritTexts,
	ledgerTexts,
	lineTexts,
	limitsTexts,
	llmTexts,
	llmclientsTexts,
	llmkindsTexts,
	mcpTexts,
	mcpverbsTexts,
	memoryTexts,
	memoryshowTexts,
	memoryverbsTexts,
	modelsTexts,
	ollamaTexts,
	opsTexts,
	planningTexts,
	askingTexts,
	planningReplanTexts,
	policyTexts,
	priceTexts,
	progressTexts,
	projectTexts,
	recordTexts,
	recordedTexts,
	repositoryTexts,
	routingTexts,
	sandboxTexts,
	scanTexts,
	slackTexts,
	spendingTexts,
	terminalTexts,
	workspaceTexts,
}

// find is the text of a key.
func find(key string) (text, bool) {
	for _, t := range catalog {
		if found, ok := t[key]; ok {
			return found, true
		}
	}
	return text{}, false
}
