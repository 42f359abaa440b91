package config

// Classifier is the section routing.classifier (route §10).
type Classifier struct {
	Enabled              bool    `yaml:"enabled" default:"true" doc:"Ask the worker's model about a message that neither a command nor the dictionary decides, once."`
	MinConfidence        float64 `yaml:"min_confidence" default:"0.6" check:"min=0,max=1" doc:"Below this what it says is not followed, nor what Chat proposes: the message is Chat's."`
	MinConfidenceForCode float64 `yaml:"min_confidence_for_code" default:"0.8" check:"min=0,max=1" doc:"Likewise for CODE, which also takes strong evidence in the message."`
}

// Loop is the section loop (route §10).
type Loop struct {
	MaxLoops                    int     `yaml:"max_loops" default:"3" check:"min=1,max=20" doc:"Legs of workers in one turn of a chat."`
	MaxMillis                   int     `yaml:"max_millis" default:"90000" check:"min=1000,max=3600000" doc:"Longest time of one turn, in milliseconds; jobs of coders have their own."`
	AllowAutoRerouteOnce        bool    `yaml:"allow_auto_reroute_once" default:"true" doc:"A worker that says that another route fits better is followed, once a message."`
	AllowChatProposeRerouteOnce bool    `yaml:"allow_chat_propose_reroute_once" default:"true" doc:"Likewise for what Chat proposes."`
	ConfirmBelow                float64 `yaml:"confirm_below" default:"0.6" check:"min=0,max=1" doc:"Below this confidence of a worker its user is asked before a leg that is CODE or has risk."`
}
