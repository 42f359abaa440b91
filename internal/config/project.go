package config

// ProjectAgentRules is the section project_agent_rules.
type ProjectAgentRules struct {
	Enabled      bool `yaml:"enabled" default:"true" doc:"Tell the model what they say."`
	MaxFileSize  int  `yaml:"max_file_size" default:"102400" check:"min=1,max=8388608" doc:"How much of one file is read, in bytes; what is cut off is said."`
	MaxTotalSize int  `yaml:"max_total_size" default:"512000" check:"min=1,max=67108864" doc:"How much of all of them is read, in bytes. An eighth of the model's window is the limit as well."`
}

// FileListContext is the section file_list_context.
type FileListContext struct {
	Enabled  bool `yaml:"enabled" default:"true" doc:"Show the map: about 600 tokens, less where the model's window is small."`
	MaxDepth int  `yaml:"max_depth" default:"-1" check:"min=-1,max=4096" doc:"How deep directories are opened in it; 0 opens the root only, -1 is without a limit."`
}
