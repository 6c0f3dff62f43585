/** Holds the operations that hostd has without a catalogue of its own: those of FreeBSD hosts, and their twins on Linux. */

// biome-ignore format: a table to be read
export const builtInCatalogue = String.raw`
# FreeBSD

[operations.bastille-list]
about = "List the jails of Bastille"
platforms = ["freebsd"]
risk = "low"
argv = ["/usr/local/bin/bastille", "list"]

[operations.bastille-cmd]
about = "Run a program in a jail"
platforms = ["freebsd"]
risk = "high"
approval = true
argv = ["/usr/local/bin/bastille", "cmd", "{jail}", "{program}", "{args}"]
timeout_s = 120
[operations.bastille-cmd.params]
jail = { type = "text", pattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$' }
program = { type = "text", pattern = '^[A-Za-z0-9_/][A-Za-z0-9_./-]{0,255}$' }
args = { type = "list", pattern = '^[A-Za-z0-9_./:=@%+,][A-Za-z0-9_./:=@%+, -]{0,255}$', optional = true }

[operations.pf-status]
about = "Show whether the packet filter runs, and its counters"
platforms = ["freebsd"]
risk = "low"
argv = ["/sbin/pfctl", "-s", "info"]

# FreeBSD and Linux

[operations.zfs-snapshot]
about = "Take a snapshot of a ZFS dataset"
platforms = ["freebsd", "linux"]
risk = "medium"
argv = ["/sbin/zfs", "snapshot", "{dataset}@{name}"]
timeout_s = 120
[operations.zfs-snapshot.params]
dataset = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)*$' }
name = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$' }

[operations.zfs-list]
about = "List datasets or snapshots of ZFS"
platforms = ["freebsd", "linux"]
risk = "low"
argv = ["/sbin/zfs", "list", "-H", "-p", "-t", "{type}"]
[operations.zfs-list.params]
type = { type = "enum", values = ["filesystem", "snapshot", "volume"], default = "filesystem" }

[operations.disk-usage]
about = "Show how full the file systems are"
platforms = ["freebsd", "linux", "darwin"]
risk = "low"
argv = ["/bin/df", "-k"]

# Linux

[operations.machine-list]
about = "List the containers and machines of systemd"
platforms = ["linux"]
risk = "low"
argv = ["/usr/bin/machinectl", "list", "--no-pager", "--no-legend"]

[operations.machine-cmd]
about = "Run a program in a systemd machine"
platforms = ["linux"]
risk = "high"
approval = true
argv = ["/usr/bin/systemd-run", "--quiet", "--wait", "--pipe", "--machine={machine}", "--", "{program}", "{args}"]
timeout_s = 120
[operations.machine-cmd.params]
machine = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' }
program = { type = "text", pattern = '^/[A-Za-z0-9_./-]{1,255}$' }
args = { type = "list", pattern = '^[A-Za-z0-9_./:=@%+,-][A-Za-z0-9_./:=@%+, -]{0,255}$', optional = true }

[operations.container-list]
about = "List the containers of podman"
platforms = ["linux"]
risk = "low"
argv = ["/usr/bin/podman", "ps", "--all", "--no-trunc"]

[operations.btrfs-snapshot]
about = "Take a read-only snapshot of a btrfs subvolume, into the folder /.snapshots"
platforms = ["linux"]
risk = "medium"
argv = ["/usr/bin/btrfs", "subvolume", "snapshot", "-r", "{subvolume}", "/.snapshots/{name}"]
timeout_s = 120
[operations.btrfs-snapshot.params]
subvolume = { type = "path", under = "/", kind = "folder" }
name = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$' }

[operations.lvm-snapshot]
about = "Take a snapshot of a logical volume"
platforms = ["linux"]
risk = "medium"
argv = ["/sbin/lvcreate", "--snapshot", "--extents", "10%ORIGIN", "--name", "{name}", "{group}/{volume}"]
timeout_s = 120
[operations.lvm-snapshot.params]
name = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' }
group = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' }
volume = { type = "text", pattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' }

[operations.nft-ruleset]
about = "Show the rules of the packet filter"
platforms = ["linux"]
risk = "low"
argv = ["/usr/sbin/nft", "--stateless", "list", "ruleset"]
output_bytes = 262144

[operations.unit-status]
about = "Show the state of a systemd unit"
platforms = ["linux"]
risk = "low"
argv = ["/usr/bin/systemctl", "status", "--no-pager", "--lines=0", "--", "{unit}"]
done_codes = [3]
[operations.unit-status.params]
unit = { type = "text", pattern = '^[A-Za-z0-9_][A-Za-z0-9_.@:\\-]{0,255}$' }

[operations.unit-restart]
about = "Restart a systemd unit"
platforms = ["linux"]
risk = "high"
approval = true
argv = ["/usr/bin/systemctl", "restart", "--no-ask-password", "--", "{unit}"]
timeout_s = 120
[operations.unit-restart.params]
unit = { type = "text", pattern = '^[A-Za-z0-9_][A-Za-z0-9_.@:\\-]{0,255}$' }

[operations.journal-tail]
about = "Show the last lines of the system log, of one unit or of all"
platforms = ["linux"]
risk = "medium"
argv = ["/usr/bin/journalctl", "--no-pager", "--quiet", "--output=short-iso", "--lines={lines}", "--unit={unit}"]
output_bytes = 262144
[operations.journal-tail.params]
lines = { type = "int", min = 1, max = 1000, default = 100 }
unit = { type = "text", pattern = '^[A-Za-z0-9_][A-Za-z0-9_.@:\\-]{0,255}$', optional = true }
`
