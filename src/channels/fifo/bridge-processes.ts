/** The bridges that the daemon starts: what the command line says of them, and each kept running. */

import type { HostContext, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { pause } from '../../host/sleep.ts'
import type { BridgeWatch } from '../../service/fifo/exchange.ts'
import { type Supervised, supervise } from '../../service/supervise.ts'

const roles = ['interact', 'brain', 'claw'] as const
type Role = (typeof roles)[number]

export type Bridge = { readonly role: Role; readonly command: string }

/** One a role: two would take each other's lines. @throws FailureError usage */
export function bridgesIn(texts: readonly string[]): readonly Bridge[] {
  const bridges = texts.map(bridgeIn)
  const twice = bridges.find(({ role }, at) => bridges.findIndex((each) => each.role === role) !== at)
  if (!twice) return bridges
  throw new FailureError('usage', `--bridge ${twice.role}=… is there twice, and the two would take each other's lines; keep one`)
}

function bridgeIn(text: string): Bridge {
  const [, name, command = ''] = /^(\w+)=(.*\S.*)$/s.exec(text) ?? []
  const role = roles.find((each) => each === name)
  if (role) return { role, command }
  throw new FailureError('usage', `--bridge ${JSON.stringify(text)}: write interact=COMMAND, brain=COMMAND or claw=COMMAND`)
}

export type Keeping = {
  readonly setup: Setup
  readonly dir: string
  /** Each time one runs. */
  readonly started: (name: string, pid: number) => void
  /** Who asks it questions, and should know whether it is there. */
  readonly watches: { readonly [name in Role]?: BridgeWatch | undefined }
}

/** Their files are named from where the daemon was started. */
export function keepRunning({ setup, dir, started, watches }: Keeping, { role, command }: Bridge): Supervised {
  const { log, context } = setup
  return supervise({
    name: role,
    command,
    cwd: context.cwd,
    env: bridgeEnvironment(context, dir),
    report: log,
    hear: (line) => log('info', 'bridge says', { bridge: role, line }),
    started(pid) {
      started(role, pid)
      watches[role]?.started()
    },
    worked: () => watches[role]?.answered() ?? false,
    ended: (againInMs) => watches[role]?.ended(againInMs),
    now: () => performance.now(),
    sleep: pause,
  })
}

/** A bridge for a role means that the role is played there. @throws FailureError usage when the flag says otherwise */
export function playedBy<P extends string>(role: Role, bridges: readonly Bridge[], flag: P | undefined): P | 'fifo' | undefined {
  const isBridged = bridges.some((bridge) => bridge.role === role)
  if (isBridged && flag === 'inside')
    throw new FailureError('usage', `--bridge ${role}=… and --${role} inside contradict each other; drop one`)
  return flag ?? (isBridged ? 'fifo' : undefined)
}

/** What a bridge gets: all of it but what is ours alone, and where the FIFOs are. */
export function bridgeEnvironment({ env }: HostContext, dir: string): { readonly [name: string]: string } {
  const theirs = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined || /^(BRAIDCLAW_|BUN_|NODE_OPTIONS$)/.test(name) ? [] : [[name, value]],
  )
  return { ...Object.fromEntries(theirs), PLANCKCLAW_FIFOS: dir }
}
