/** Parses the bridges of the daemon's command line and keeps each of them running. */

import type { HostContext, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { sleep } from '../../kit/abort.ts'
import type { BridgeWatch } from '../../service/fifo/exchange.ts'
import { type Supervised, supervise } from '../../service/supervise.ts'

const roles = ['interact', 'brain', 'claw'] as const
type BridgeRole = (typeof roles)[number]

export type Bridge = { readonly role: BridgeRole; readonly command: string }

/** Allows one bridge per role, because two would take each other's lines. @throws FailureError usage */
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

export type BridgeContext = {
  readonly setup: Setup
  readonly dir: string
  /** Called each time a bridge starts. */
  readonly started: (name: string, pid: number) => void
  /** The exchange that asks this bridge, and needs to know whether it runs. */
  readonly watches: { readonly [name in BridgeRole]?: BridgeWatch | undefined }
}

/** Bridge commands resolve their files from the folder where the daemon was started. */
export function keepRunning({ setup, dir, started, watches }: BridgeContext, { role, command }: Bridge): Supervised {
  const { log, context } = setup
  return supervise({
    name: role,
    command,
    cwd: context.cwd,
    env: bridgeEnvironment(context, dir),
    report: log,
    onLine: (line) => log('info', 'bridge says', { bridge: role, line }),
    started(pid) {
      started(role, pid)
      watches[role]?.started()
    },
    worked: () => watches[role]?.answered() ?? false,
    ended: (againInMs) => watches[role]?.ended(againInMs),
    now: () => performance.now(),
    sleep,
  })
}

/** A bridge for a role assigns that role to the FIFOs. @throws FailureError `usage` when the flag contradicts it */
export function roleFromFlags<P extends string>(role: BridgeRole, bridges: readonly Bridge[], flag: P | undefined): P | 'fifo' | undefined {
  const isBridged = bridges.some((bridge) => bridge.role === role)
  if (isBridged && flag === 'inside')
    throw new FailureError('usage', `--bridge ${role}=… and --${role} inside contradict each other; drop one`)
  return flag ?? (isBridged ? 'fifo' : undefined)
}

/** Returns the environment of a bridge: everything except our own variables, plus the folder of the FIFOs. */
export function bridgeEnvironment({ env }: HostContext, dir: string): { readonly [name: string]: string } {
  const theirs = Object.entries(env).flatMap(([name, value]): [string, string][] =>
    value === undefined || /^(BRAIDCLAW_|BUN_|NODE_OPTIONS$)/.test(name) ? [] : [[name, value]],
  )
  return { ...Object.fromEntries(theirs), PLANCKCLAW_FIFOS: dir }
}
