package refusal

import "github.com/berth-hpc/berth/translate/status"

// Setting is the refusal of a setting because of its name or value, whatever object it was
// for.
type Setting struct {
	Message          Text
	Code             status.ErrorCode
	Parameter, Value string
}

// Error returns the message.
func (s Setting) Error() string { return string(s.Message) }

// Unwrap returns the message as a refusal.
func (s Setting) Unwrap() error { return s.Message }

// codes are the codes of the refusals by which clients decide.
var codes = map[Text]status.ErrorCode{
	AccessDenied:            status.CodeAccessDenied,
	AlreadyCompleting:       status.CodeAlreadyCompleting,
	ComponentOperation:      status.CodeComponentOperation,
	InvalidJobID:            status.CodeInvalidJobID,
	NoChanges:               status.CodeNoChanges,
	NodeConfigUnavailable:   status.CodeNodesUnavailable,
	NodesBusy:               status.CodeNodesBusy,
	PartNodesNeedsAll:       status.CodeInvalidSettings,
	PartNodesNeedsAllUpdate: status.CodeInvalidSettings,
}

// Code returns the code of the refusal, "" if it has none.
func (t Text) Code() status.ErrorCode { return codes[t] }
