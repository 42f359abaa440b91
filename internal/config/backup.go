package config

// Backup is the section backup (store-v2 §8.4).
type Backup struct {
	Dir          string   `yaml:"dir" check:"place,optional" doc:"Where backups lie: a directory outside of the base directory, on another disk if there is one, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX. Empty: tori serve makes none."`
	Schedule     string   `yaml:"schedule" default:"daily" check:"enum=daily|never" doc:"daily: tori serve makes a backup once a day with the rest of its maintenance; never leaves it to tori backup."`
	Generations  int      `yaml:"generations" default:"7" check:"min=1,max=10000" doc:"How many backups are kept."`
	Recipients   []string `yaml:"recipients" doc:"Public keys of age (age1…, as age-keygen prints them): with any, backups are encrypted, and only their secret keys and this base directory's own open them."`
	IdentityFile string   `yaml:"identity_file" doc:"File of age's secret keys, needed only where the base directory is lost or another: tori restore, tori backup verify."`
	S3           S3       `yaml:"s3" doc:"How the server of s3:// is reached."`
	Azure        Azure    `yaml:"azure" doc:"How the account of azure:// is reached."`
}

// S3 is the section backup.s3.
type S3 struct {
	Endpoint     string `yaml:"endpoint" check:"url,optional" doc:"Address of an S3-compatible server, such as https://minio.example.org:9000; its buckets are named in paths. Empty: Amazon's of the region."`
	Region       string `yaml:"region" default:"us-east-1" check:"nonempty" doc:"The region of the bucket."`
	AccessKey    string `yaml:"access_key" default:"${AWS_ACCESS_KEY_ID}" doc:"Id of the key that requests are signed with. It must be allowed to list, read, write and delete below the prefix."`
	SecretKey    string `yaml:"secret_key" default:"${AWS_SECRET_ACCESS_KEY}" secret:"true" doc:"The key; keep it in the environment rather than in this file."`
	SessionToken string `yaml:"session_token" default:"${AWS_SESSION_TOKEN}" secret:"true" doc:"Token of a key that is good for some time."`
}

// Azure is the section backup.azure.
type Azure struct {
	Endpoint string `yaml:"endpoint" check:"url,optional" doc:"Address of the storage account, where it is not https://ACCOUNT.blob.core.windows.net: in another cloud, such as https://ACCOUNT.blob.core.chinacloudapi.cn, or of an emulator, http://127.0.0.1:10000/ACCOUNT."`
	Account  string `yaml:"account" default:"${AZURE_STORAGE_ACCOUNT}" doc:"Name of the storage account of Azure Blob Storage."`
	Key      string `yaml:"key" default:"${AZURE_STORAGE_KEY}" secret:"true" doc:"One of the account's two keys, in base64 as Azure shows it; keep it in the environment rather than in this file."`
}
