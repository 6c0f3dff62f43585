/** `daemon`: an assistant that stays, behind six FIFOs, with bridges to whoever thinks, talks and has the tools. */

import { resolve } from 'node:path'
import { agentPaths } from '../../memory/agents/paths.ts'
import { agentFolder } from '../../memory/recall/folder.ts'
import { createFifos } from '../../service/fifo/create.ts'
import { removeFifos } from '../../service/fifo/remove.ts'
import { type Supervised, supervise } from '../../service/supervise.ts'
import { bridgeEnvironment, withEnvFile } from '../daemon/environment.ts'
import { type Held, hold } from '../daemon/hold.ts'
import { clawTools, fifoBrain } from '../daemon/roles.ts'
import { serve } from '../daemon/serve.ts'
import { CliExit, exitCodes } from '../exit.ts'
import { onInterrupt } from '../interrupt.ts'
import { type Persona, personaOf } from '../persona.ts'
import { providerFor } from '../provider.ts'
import type { DaemonFlags } from '../routes/types.ts'
import { setUp } from '../setup.ts'
import { tenTools } from '../toolbox.ts'
import type { CliContext, Setup } from '../world.ts'

const roles = ['interact', 'brain', 'claw'] as const
type Role = (typeof roles)[number]
type Bridge = { readonly role: Role; readonly command: string }

/** @throws CliExit when it cannot start; it ends with 0 once it is told to stop */
export async function daemon(this: CliContext, flags: DaemonFlags): Promise<void> {
  const bridges = (flags.bridge ?? []).map(bridgeOf)
  const context = withEnvFile(this, flags.envFile)
  const { workspace, model, agent, autonomy, maxTurns, approveAllMedium } = flags
  const setup = setUp(context, { workspace, model, agent, autonomy, maxTurns, approveAllMedium })
  Bun.unsafe.setJITPolicy(1)
  const dir = resolve(context.cwd, flags.fifoDir ?? (context.env.PLANCKCLAW_FIFOS || '/tmp/planckclaw'))
  const created = await createFifos(dir)
  if (!created.ok) throw new CliExit(exitCodes.error, `error: ${created.message}`)
  const held = hold(dir)
  if (!held.ok) throw new CliExit(exitCodes.error, `error: ${held.message}`)
  if (held.orphans > 0) setup.log('warn', 'recovered after a crash', { bridgesEnded: held.orphans })
  const stop = new AbortController()
  const interrupt = onInterrupt(() => stop.abort())
  const running: Supervised[] = []
  try {
    const { provider, tools, described } = await rolesOf(setup, { flags, bridges, dir })
    running.push(...bridges.map((bridge) => start({ setup, held, dir }, bridge)))
    await serve({
      setup,
      persona: inFolder(setup),
      dir,
      provider,
      tools,
      ...(flags.sandbox ? { sandbox: flags.sandbox } : {}),
      ready: () => this.process.stderr.write(`ready: ${dir} (${described}); stop with Ctrl-C or SIGTERM\n`),
      signal: stop.signal,
    })
  } finally {
    interrupt.stop()
    await Promise.all(running.map((bridge) => bridge.stop(1_000)))
    held.release()
    removeFifos(dir)
  }
}

function bridgeOf(text: string): Bridge {
  const [, name, command = ''] = /^(\w+)=(.+)$/s.exec(text) ?? []
  const role = roles.find((each) => each === name)
  if (role) return { role, command }
  throw new CliExit(exitCodes.usage, `error: --bridge ${JSON.stringify(text)}: write interact=COMMAND, brain=COMMAND or claw=COMMAND`)
}

type Casting = { readonly flags: DaemonFlags; readonly bridges: readonly Bridge[]; readonly dir: string }

/** A bridge for a role means that the role is played there. */
async function rolesOf(setup: Setup, { flags, bridges, dir }: Casting) {
  const has = (role: Role) => bridges.some((bridge) => bridge.role === role)
  const brain = flags.brain ?? (has('brain') ? 'fifo' : 'inside')
  const claw = flags.claw ?? (has('claw') ? 'fifo' : 'inside')
  const provider = brain === 'fifo' ? fifoBrain(dir).provider : await providerFor(setup, setup.config.defaultProvider)
  const tools = claw === 'inside' ? tenTools : clawTools(setup, { dir, alone: claw === 'fifo' }).tools
  const discord = setup.config.channels.discord.enabled ? ' and Discord' : ''
  const described = `interact: fifo${discord}; brain: ${brain === 'fifo' ? 'fifo' : provider.name}; claw: ${claw}`
  return { provider, tools, described }
}

type Place = { readonly setup: Setup; readonly held: Extract<Held, { ok: true }>; readonly dir: string }

function start({ setup, held, dir }: Place, { role, command }: Bridge): Supervised {
  const { log, context } = setup
  return supervise({
    name: role,
    command,
    cwd: context.cwd,
    env: bridgeEnvironment(context, dir),
    report: log,
    hear: (line) => log('info', 'bridge says', { bridge: role, line }),
    started: (pid) => held.note(role, pid),
    now: () => performance.now(),
    sleep,
  })
}

/** PLANCKCLAW_DIR moves the files of the default agent. */
function inFolder(setup: Setup): Persona {
  const persona = personaOf(setup)
  const { config, paths } = setup
  return { ...persona, paths: agentPaths(agentFolder({ agents: paths.agents, id: persona.id, chosen: config.memory.agentDir })) }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const wake = () => {
      clearTimeout(timer)
      resolve()
    }
    signal.addEventListener('abort', wake, { once: true })
  })
}
