/** Implements `daemon`: it runs a long-lived assistant behind six FIFOs, with bridges for the roles brain, interact and claw. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Bridge, bridgesIn, keepRunning, roleFromFlags } from '../../../channels/fifo/bridge-processes.ts'
import { type BridgeOptions, serveBrain, serveClaw, serveCli, serveDiscord, serveInteract } from '../../../channels/fifo/bridges.ts'
import { type DaemonLock, fifoFolder, lockFolder, makeFifos } from '../../../channels/fifo/daemon-folder.ts'
import { assignRoles, type FifoRoles } from '../../../channels/fifo/fifo-roles.ts'
import { serve } from '../../../channels/serve-channels.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { agentProfileOf } from '../../../host/setup/agent-profile.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atAsyncEnd, atEnd } from '../../../kit/errors.ts'
import { FIFOS } from '../../../kit/wire.ts'
import { clearLeftovers } from '../../../sandbox/private-folder.ts'
import type { Supervised } from '../../../service/supervise.ts'
import { type Command, command, type Flags, type Given } from '../../args/command.ts'
import { approveFlag, autonomyFlag, folderFlags, modelFlag, sandboxFlag, serverFlags, workspaceFlag } from '../../args/turn-flags.ts'
import { commandError } from '../../exit.ts'
import { withEnvFile } from '../../server-files.ts'
import { loadServer } from './serve.ts'

const flags = {
  ...folderFlags,
  bridge: {
    type: 'text',
    many: true,
    about: 'Start and keep running a bridge: interact=COMMAND, brain=COMMAND or claw=COMMAND; may be repeated',
  },
  brain: { type: 'choice', values: ['inside', 'fifo'], about: 'Who thinks: the configured provider, or a brain on the FIFOs' },
  claw: { type: 'choice', values: ['inside', 'fifo', 'both'], about: 'Who has the tools: the built-in ones, a claw on the FIFOs, or both' },
  ...serverFlags,
} as const satisfies Flags
type DaemonFlags = Given<typeof flags>

/** How long a bridge may take to end: together with the last answer less than the usual time between SIGTERM and SIGKILL. */
const LEAVE_MS = 1_000

/** @throws CliExit when it cannot start, or when its FIFOs are removed; it ends with exit code 0 on a stop signal */
export const daemon = command({
  flags: flags,
  examples: [
    ['', 'with the configured model and our built-in tools'],
    ['--bridge brain=./bridges/brain.sh --bridge claw=./bridges/claw.sh', 'brain and claw are scripts'],
    ['--fifo-dir ~/fifos --agent planck', 'elsewhere, as another agent'],
  ],
  async run(context, given) {
    const bridges = bridgesIn(given.bridge ?? [])
    const setup = loadServer(withEnvFile(context, given.envFile), given)
    const dir = fifoFolder(setup.context, given.fifoDir)
    const casting = castingOf(given, bridges, dir)
    const held = await take(dir)
    if (held.orphans > 0) setup.log('warn', 'recovered after a crash', { bridgesEnded: held.orphans })
    clearLeftovers(setup.paths.home, setup.log)
    const stop = new AbortController()
    const interrupt = onInterrupt(() => stop.abort())
    using _end = atEnd(() => {
      held.release()
      interrupt.stop()
    })
    await run({ setup, casting, bridges, held, signal: stop.signal, flags: given })
  },
})

function castingOf({ brain, claw, model }: DaemonFlags, bridges: readonly Bridge[], dir: string): FifoRoles {
  return { dir, brain: roleFromFlags('brain', bridges, brain), claw: roleFromFlags('claw', bridges, claw) ?? 'inside', model }
}

type Mine = Extract<DaemonLock, { ok: true }>

/** Takes the lock of the folder and creates its FIFOs. @throws CliExit 1 */
async function take(dir: string): Promise<Mine> {
  const made = !FIFOS.some((name) => existsSync(join(dir, name)))
  await makeFifos(dir)
  const held = lockFolder(dir, { made })
  if (!held.ok) throw commandError(held.message)
  // The previous holder may have removed the FIFOs.
  await makeFifos(dir)
  return held
}

type DaemonRun = {
  readonly setup: CliSetup
  readonly casting: FifoRoles
  readonly bridges: readonly Bridge[]
  readonly held: Mine
  readonly signal: AbortSignal
  readonly flags: DaemonFlags
}

async function run({ setup: given, casting, bridges, held, signal, flags }: DaemonRun): Promise<void> {
  const { dir } = casting
  const { setup, provider, tools, described, watches, close } = await assignRoles(given, casting, signal)
  const running: readonly Supervised[] = bridges.map((bridge) => keepRunning({ setup, dir, started: held.note, watches }, bridge))
  await using _end = atAsyncEnd(() => Promise.all([close(), ...running.map((bridge) => bridge.stop(LEAVE_MS))]))
  await serve({
    setup,
    agentProfile: agentProfileOf(setup),
    dir,
    provider,
    tools,
    sandbox: flags.sandbox,
    ready: (places) => setup.context.say(`ready: ${[dir, ...places].join(', ')} (${described}); stop with Ctrl-C or SIGTERM\n`),
    signal,
  })
}

/** Implements `bridge interact | cli | discord | brain | claw`: our side of one role, for another agent that uses the six FIFOs. */
const bridgeFlags = {
  ...folderFlags,
  channel: { type: 'text', about: 'cli: whom the answers go to (default: cli)' },
  ...workspaceFlag,
  ...sandboxFlag,
  ...modelFlag,
  ...autonomyFlag,
  ...approveFlag,
} as const satisfies Flags
type BridgeFlags = Given<typeof bridgeFlags>

const shared = {
  flags: bridgeFlags,
  examples: [
    ['', 'serve /tmp/planckclaw'],
    ['--fifo-dir ~/fifos', 'another folder'],
  ],
} as const

type BridgeCommand = Command<typeof bridgeFlags>

export const interact = { ...shared, run: (context, given) => bridge(context, given, serveInteract) } as const satisfies BridgeCommand
export const cli = { ...shared, run: (context, given) => bridge(context, given, serveCli) } as const satisfies BridgeCommand
export const discord = { ...shared, run: (context, given) => bridge(context, given, serveDiscord) } as const satisfies BridgeCommand
export const brain = { ...shared, run: (context, given) => bridge(context, given, serveBrain) } as const satisfies BridgeCommand
export const claw = { ...shared, run: (context, given) => bridge(context, given, serveClaw) } as const satisfies BridgeCommand

type Serve = (bridging: BridgeOptions, bridgeFlags: BridgeFlags) => Promise<void>

/** Ends with exit code 0 on a stop signal, or when the input of the served people has ended. */
async function bridge(outer: CliContext, given: BridgeFlags, serve: Serve): Promise<void> {
  const context = withEnvFile(outer, given.envFile)
  const setup = loadSetup(context, given, { stays: true })
  const dir = fifoFolder(context, given.fifoDir)
  await makeFifos(dir)
  const stop = new AbortController()
  using _interrupt = onInterrupt(() => stop.abort())
  await serve({ setup, dir, signal: stop.signal, stop: () => stop.abort() }, given)
}
