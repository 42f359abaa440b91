package i18n

// llmclientsTexts are the texts of the packages below llm.
var llmclientsTexts = map[string]text{
	"openai.temperature": {
		"The temperature for the model provider %s is %v, but it must be from 0 to 2. Correct it, or leave it out for the model's own.",
		"モデルプロバイダー %s の temperature が %v になっています。0 から 2 までの値にするか、設定を消してモデルの既定値を使ってください。",
	},
}
