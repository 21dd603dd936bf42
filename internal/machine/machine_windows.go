package machine

import "golang.org/x/sys/windows/registry"

// ID returns this machine's ID, or "" if it has none.
func ID() string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`,
		registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return ""
	}
	defer key.Close()
	guid, _, _ := key.GetStringValue("MachineGuid")
	return guid
}
