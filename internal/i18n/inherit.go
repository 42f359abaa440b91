package i18n

func inheritTexts() map[string]text {
	return map[string]text{
		"config.warn.inherited": {"%s: %s is %d; %d to %d are recommended: 5 to 10 %% of the model's context length of %d", "%s: %s は %d です。推奨は %d〜%d（モデルのコンテキスト長 %d の 5〜10 %%）です"},
	}
}
