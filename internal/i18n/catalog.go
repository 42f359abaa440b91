package i18n

import "sync"

// catalog are the tables of texts, each beside the room it serves, in a file named after
// it. One is made when a key is looked for in it, and they are not joined: each start would
// pay for that.
var catalog = [...]table{
	{make: agentTexts},
	{make: appTexts},
	{make: approvalTexts},
	{make: jobTexts},
	{make: backupTexts},
	{make: brokerTexts},
	{make: budgetTexts},
	{make: alertTexts},
	{make: checkTexts},
	{make: channelTexts},
	{make: cliTexts},
	{make: cloudTexts},
	{make: configTexts},
	{make: conversationTexts},
	{make: webTexts},
	{make: telemetryTexts},
	{make: contextstoreTexts},
	{make: doorTexts},
	{make: folderTexts},
	{make: githubTexts},
	{make: giteaTexts},
	{make: restTexts},
	{make: reviewTexts},
	{make: gitlabTexts},
	{make: hookTexts},
	{make: hostedTexts},
	{make: comparedTexts},
	{make: effectsTexts},
	{make: planViewTexts},
	{make: evalTexts},
	{make: imageTexts},
	{make: inheritTexts},
	{make: ledgerTexts},
	{make: postgresTexts},
	{make: lineTexts},
	{make: limitsTexts},
	{make: llmTexts},
	{make: llmclientsTexts},
	{make: llmkindsTexts},
	{make: mcpTexts},
	{make: mcpverbsTexts},
	{make: memoryTexts},
	{make: memoryshowTexts},
	{make: memoryverbsTexts},
	{make: modelsTexts},
	{make: nightTexts},
	{make: ollamaTexts},
	{make: opsTexts},
	{make: statsTexts},
	{make: searchTexts},
	{make: usersTexts},
	{make: planningTexts},
	{make: askingTexts},
	{make: planningReplanTexts},
	{make: policyTexts},
	{make: priceTexts},
	{make: progressTexts},
	{make: projectTexts},
	{make: recordTexts},
	{make: recordedTexts},
	{make: repositoryTexts},
	{make: routingTexts},
	{make: sandboxTexts},
	{make: scanTexts},
	{make: slackTexts},
	{make: spendingTexts},
	{make: terminalTexts},
	{make: webhookTexts},
	{make: workspaceTexts},
}

// table makes texts at their first use.
type table struct {
	make  func() map[string]text
	once  sync.Once
	texts map[string]text
}

func (t *table) all() map[string]text {
	t.once.Do(func() { t.texts = t.make() })
	return t.texts
}

// find is the text of a key.
func find(key string) (text, bool) {
	for i := range catalog {
		if found, ok := catalog[i].all()[key]; ok {
			return found, true
		}
	}
	return text{}, false
}
