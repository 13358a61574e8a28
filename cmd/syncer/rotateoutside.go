package main

import (
	"fmt"
	"strings"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
)

// outsideRights returns the rights that the administrators of servers need, as statements,
// and the permissions of Syncer's own credentials in clouds.
func outsideRights(c config.Rotation) string {
	var text strings.Builder
	for _, set := range c.Sets {
		_, server := set.Server()
		switch {
		case server != nil:
			fmt.Fprintf(&text, serverRights, set.Set, strings.Join(server.Address, ", "), strings.Join(rotators.Statements(set), "\n"))
		case set.AWS != nil:
			fmt.Fprintf(&text, awsPermissions, set.Set, partition(set.AWS.Region), set.AWS.User)
		case set.GCP != nil:
			fmt.Fprintf(&text, gcpPermissions, set.Set, set.GCP.Account)
			if set.GCP.Unused > 0 {
				text.WriteString(gcpUse)
			}
		case set.Azure != nil:
			fmt.Fprintf(&text, azurePermissions, set.Set, set.Azure.Application)
		}
	}
	return text.String()
}

const serverRights = `
For the set %s, run the following at %s. Leave out objects that exist, and replace each … by a password:

%s
`

// awsPermissions is an IAM policy. GetAccessKeyLastUsed and GetCallerIdentity have no
// resource in AWS's reference; the latter needs no permission.
const awsPermissions = `
In AWS, the policy of Syncer's own identity for the set %[1]s:

{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Resource": "arn:%[2]s:iam::*:user/%[3]s",
   "Action": ["iam:CreateAccessKey", "iam:ListAccessKeys", "iam:UpdateAccessKey", "iam:DeleteAccessKey"]},
  {"Effect": "Allow", "Resource": "*", "Action": "iam:GetAccessKeyLastUsed"}]}
`

// gcpPermissions are those of a custom role, which is granted on the service account.
const gcpPermissions = `
In Google Cloud, enable the API iam.googleapis.com in the project of Syncer's own identity.
For the set %[1]s, grant this identity on the service account %[2]s a custom role with:

iam.serviceAccountKeys.create,iam.serviceAccountKeys.list,iam.serviceAccountKeys.disable,iam.serviceAccountKeys.delete
`

// gcpUse is needed if Syncer asks when a key was used.
const gcpUse = `
Enable policyanalyzer.googleapis.com too, and grant on the project a custom role with:

policyanalyzer.serviceAccountKeyLastAuthenticationActivities.query
`

// azurePermissions is the least privilege of Microsoft Graph.
const azurePermissions = `
In Azure, for the set %[1]s, Syncer's own identity needs the application permission
Application.ReadWrite.OwnedBy of Microsoft Graph. It must be an owner of the application
%[2]s.
`

// partition returns the AWS partition of a region.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
