package i18n

import "maps"

// catalog joins the tables of texts; each table is kept beside the room it
// serves, in a file named after it.
var catalog = join(
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
	spendingTexts,
	terminalTexts,
	workspaceTexts,
)

func join(tables ...map[string]text) map[string]text {
	all := map[string]text{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}
