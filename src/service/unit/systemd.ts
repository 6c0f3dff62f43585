/** Runs us as a systemd service of the user. The format of the file: systemd.unit(5), systemd.service(5), systemd.exec(5). */

import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { textIn } from '../../kit/proc.ts'
import { mustRun, type RunProgram, type ServiceManager, type ServiceRun, type ServiceState, stopSeconds, writeUnit } from './service-run.ts'

/** The name of our unit. */
const unit = 'braidclaw.service'

export type SystemdOptions = {
  /** $XDG_CONFIG_HOME, or ~/.config. */
  readonly configHome: string
  readonly uid: number
  readonly run: RunProgram
  readonly exists: (path: string) => boolean
}

export function systemdManager({ configHome, uid, run, exists }: SystemdOptions): ServiceManager {
  const file = `${configHome}/systemd/user/${unit}`
  const ask = (...words: readonly string[]) => mustRun(run, ['systemctl', '--user', ...words])
  return {
    kind: 'systemd',
    file,
    text: systemdUnit,
    argv: () => argvIn(textIn(file)),
    async install(given) {
      mkdirSync(dirname(file), { recursive: true })
      writeUnit(file, systemdUnit(given))
      await ask('daemon-reload')
      await ask('enable', unit)
    },
    async start() {
      // A unit that failed too often is not started until this.
      await run(['systemctl', '--user', 'reset-failed', unit])
      await ask('start', unit)
    },
    stop: async () => void (await ask('stop', unit)),
    async uninstall() {
      await run(['systemctl', '--user', 'disable', '--now', unit])
      rmSync(file, { force: true })
      await ask('daemon-reload')
    },
    state: async () => stateIn(exists(file), await ask('show', unit, '--timestamp=unix', '--property', properties.join())),
    async hints() {
      const { stdout } = await run(['loginctl', 'show-user', String(uid), '--property=Linger', '--value'])
      if (stdout.trim() !== 'no') return []
      return [{ says: 'it ends when you log out, and does not start before you log in', remedy: 'loginctl enable-linger' }]
    },
    log: ({ lines, follow }) => ({
      argv: ['journalctl', '--user', '--unit', unit, '--lines', String(lines), '--no-pager', ...(follow ? ['--follow'] : [])],
    }),
  }
}

/** Tells whether the user's service manager answers: it is absent in containers and in most sessions of `su`. */
export async function hasSystemd(run: RunProgram): Promise<boolean> {
  return (await run(['systemctl', '--user', 'show-environment'])).code === 0
}

/**
 * Hardened as far as a user's own manager can without a user namespace, which bubblewrap needs for itself. MemoryDenyWriteExecute would end
 * Bun's compiler, and RestrictNamespaces, ProtectSystem and PrivateTmp the sandbox of commands, which confines far more than they do.
 */
export function systemdUnit({ argv, env, folder }: ServiceRun): string {
  return `[Unit]
Description=BraidClaw, an agent that stays
Documentation=man:braidclaw(1)
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
ExecStart=${[program(argv[0]), ...argv.slice(1).map((word) => quoted(word).replaceAll('$', '$$$$'))].join(' ')}
WorkingDirectory=${escaped(folder)}
${Object.entries(env)
  .map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`)
  .join('')}Restart=on-failure
RestartSec=2
# The codes of a wrong command line and of an altered record: starting again would not help.
RestartPreventExitStatus=2 9
# Cancelled by a signal.
SuccessExitStatus=130
KillMode=mixed
TimeoutStopSec=${stopSeconds}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
LimitCORE=0

[Install]
WantedBy=default.target
`
}

/** systemd expands no "$" in it. @throws Error for the characters that systemd allows in no program's path */
function program(path: string): string {
  if (/["'\\]/.test(path))
    throw new Error(`systemd runs no program whose path contains a quote or backslash: ${path}; install it elsewhere`)
  return `"${escaped(path)}"`
}

/** Quotes a word of an assignment; on a command line "$" begins a variable and is doubled besides. */
function quoted(word: string): string {
  return `"${escaped(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** @throws Error for a line break, which no unit file can contain */
function escaped(text: string): string {
  if (/[\n\r]/.test(text)) throw new Error(`${JSON.stringify(text)} contains a line break, which a systemd unit cannot hold`)
  return text.replaceAll('%', '%%')
}

/** The reverse of what `systemdUnit` writes. */
function argvIn(text: string): readonly string[] | undefined {
  const line = /^ExecStart=(.*)$/m.exec(text)?.[1] ?? ''
  const words = line
    .match(/"(?:[^"\\]|\\.)*"/g)
    ?.map((word) => word.slice(1, -1).replace(/\\(.)|\$\$|%%/g, (pair: string, escapedOne?: string) => escapedOne ?? pair.slice(1)))
  return words
}

const properties = ['ActiveState', 'SubState', 'MainPID', 'NRestarts', 'ExecMainStatus', 'ActiveEnterTimestamp'] as const

function stateIn(installed: boolean, shown: string): ServiceState {
  const value = (name: (typeof properties)[number]) => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? ''
  const pid = Number(value('MainPID'))
  const since = Number(value('ActiveEnterTimestamp').replace('@', '')) * 1_000
  const running = value('ActiveState') === 'active'
  return {
    installed,
    running,
    pid: pid || undefined,
    since: running && since > 0 ? since : undefined,
    restarts: Number(value('NRestarts')) || 0,
    problem: value('ActiveState') === 'failed' ? `it failed with exit code ${value('ExecMainStatus')}; see "service logs"` : undefined,
  }
}
