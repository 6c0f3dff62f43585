/** Decides who answers and who has the tools: this process, or the program at the other end of a pair of FIFOs. */

import { join } from 'node:path'
import { channelSettings, providerNamed } from '../../config/config.ts'
import type { Setup } from '../../host/api.ts'
import { providerFor } from '../../host/setup/provider-pool.ts'
import type { SourcedTool, ToolSelection, ToolSource } from '../../host/toolset/contract.ts'
import { mergeSources, standingExecutables } from '../../host/toolset/executable-tools.ts'
import { builtInNames, builtInTools, hasStandingTools } from '../../host/toolset/tool-selection.ts'
import { createFifoProvider } from '../../providers/fifo/fifo-provider.ts'
import { seedModel } from '../../providers/fifo/seed-model.ts'
import type { Provider } from '../../runtime/port.ts'
import { type BridgeWatch, createExchange, type Exchange, type ExchangeOptions } from '../../service/fifo/exchange.ts'
import { type ClawSurvey, createClaw } from '../../tools/claw-tools.ts'
import { discord } from '../discord/kind.ts'
import { usualFolder } from './daemon-folder.ts'

export type FifoRoles = {
  readonly dir: string
  readonly brain: 'inside' | 'fifo' | undefined
  readonly claw: 'inside' | 'fifo' | 'both'
  /** The model named on the command line. */
  readonly model: string | undefined
}

export type RoleAssignment = {
  /** The given setup, with the model that this brain is asked for. */
  readonly setup: Setup
  readonly provider: Provider
  /** Absent: the usual tools. */
  readonly tools?: ToolSelection
  /** A description for people. */
  readonly described: string
  /** Watches for the supervisor of a bridge. */
  readonly watches: { readonly brain: BridgeWatch | undefined; readonly claw: BridgeWatch | undefined }
  /** Withdraws open questions. */
  close(): Promise<void>
}

/** The time for one answer of a brain, its own retries included, unless its provider has another setting. */
const BRAIN_MS = 300_000
/** The time for a claw to list its tools: at most the first time, when it may start late, and later. */
const FIRST_LIST_MS = 30_000
const LIST_MS = 2_000
/** How long a message waits for a claw that did not answer the last time. */
const SILENT_MS = 200

/**
 * @throws FailureError `provider` when the configured provider cannot be used; errno errors of the FIFOs, which `createFifos` must have
 * checked
 */
export async function assignRoles(initialSetup: Setup, roles: FifoRoles, signal: AbortSignal): Promise<RoleAssignment> {
  const { dir, claw } = roles
  const brain = brainSide(initialSetup, roles)
  const provider = brain?.provider ?? (await providerFor(initialSetup, initialSetup.config.defaultProvider))
  const setup = brain ? { ...initialSetup, config: { ...initialSetup.config, defaultModel: brain.model } } : initialSetup
  const clawSide = claw === 'inside' ? undefined : clawTools(setup, { dir, alone: claw === 'fifo', signal })
  const alsoDiscord = channelSettings(setup.config, discord).enabled ? ' and Discord' : ''
  return {
    setup,
    provider,
    tools: clawSide?.tools,
    described: `interact: fifo${alsoDiscord}; brain: ${brain ? 'fifo' : provider.name}; claw: ${claw}`,
    watches: { brain: brain?.exchange.bridge, claw: clawSide?.exchange.bridge },
    async close() {
      await Promise.all([brain?.exchange.close(), clawSide?.exchange.close()])
    },
  }
}

/** A provider of kind "fifo" uses our own folder unless it names another. */
function brainSide({ config, context, assumed }: Setup, { dir, brain, model }: FifoRoles) {
  const named = providerNamed(config, config.defaultProvider)
  const configured = named?.kind === 'fifo' ? named : undefined
  if (brain === 'inside' || (!brain && configured?.dir !== usualFolder)) return undefined
  const exchange = exchangeIn(dir, { name: 'brain', timeoutMs: configured ? configured.totalTimeoutS * 1000 : BRAIN_MS, again: 1 })
  // A key that the brain's own script needs does not count as a choice of model.
  const chosen = model !== undefined || configured || (named?.kind === 'anthropic' && assumed === undefined)
  const modelName = chosen ? config.defaultModel : context.env.PLANCKCLAW_MODEL || seedModel
  return { provider: createFifoProvider({ name: 'fifo', ask: exchange.ask }), exchange, model: modelName }
}

/** Adds the claw's tools to ours, or replaces ours. */
function clawTools(setup: Setup, { dir, alone, signal }: { readonly dir: string; readonly alone: boolean; readonly signal: AbortSignal }) {
  const { toolTimeoutS } = setup.config.limits
  // Expires before the executor's timeout, so that the message names the claw as the slow part.
  const exchange = exchangeIn(dir, { name: 'claw', timeoutMs: Math.max(500, toolTimeoutS * 1000 - 500) })
  const claw = clawSource(setup, exchange, signal)
  const standing = alone || !hasStandingTools(setup) ? undefined : standingExecutables(setup)
  const tools: ToolSelection = { ...(alone ? { builtIn: [] } : builtInTools), more: standing ? mergeSources(setup, standing, claw) : claw }
  return { tools, exchange }
}

/** Logs problems of the list when they change. A list that comes too late for one message is used for the next. */
function clawSource({ config, log }: Setup, { ask }: Exchange, stop: AbortSignal): ToolSource {
  const state: { claw?: ReturnType<typeof createClaw>; survey?: Promise<ClawSurvey>; reported: string; silent: boolean; first: boolean } = {
    reported: '',
    silent: false,
    first: true,
  }
  // Always the same array, so that nothing seems to have changed.
  const none: readonly SourcedTool[] = []

  async function surveyClaw(maxOutputBytes: number): Promise<ClawSurvey> {
    state.claw ??= createClaw({
      ask,
      builtIn: builtInNames,
      riskOf: (name) => (config.security.allowTools.includes(name) ? 'low' : 'medium'),
      maxOutputBytes,
    })
    const timeMs = state.first ? Math.min(FIRST_LIST_MS, config.limits.toolTimeoutS * 1000) : LIST_MS
    const found = await state.claw(AbortSignal.any([stop, AbortSignal.timeout(timeMs)]), state.first)
    state.first = false
    if (found.refused.join('\n') !== state.reported) for (const why of found.refused) log('warn', 'claw tool refused', { why })
    state.reported = found.refused.join('\n')
    state.silent = found.silent
    return found
  }

  return async ({ maxOutputBytes }) => {
    state.survey ??= surveyClaw(maxOutputBytes).finally(() => delete state.survey)
    const found = await (state.silent ? Promise.race([state.survey, Bun.sleep(SILENT_MS)]) : state.survey)
    return found?.tools ?? none
  }
}

type Ends = Pick<ExchangeOptions, 'timeoutMs' | 'again'> & { readonly name: 'brain' | 'claw' }

function exchangeIn(dir: string, { name, ...options }: Ends): Exchange {
  return createExchange({ requestPath: join(dir, `${name}_in`), answerPath: join(dir, `${name}_out`), ...options })
}
