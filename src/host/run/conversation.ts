/** The whole animal, top to bottom: every organ is plugged in here by hand, and nowhere else. What only some turns need is loaded when they do. */

import { existsSync } from 'node:fs'
import { type Once, once } from '../../kit/once.ts'
import { createAgent as createRunner } from '../../runtime/create-agent.ts'
import { createStreamRedactor } from '../../security/redaction/redact-stream.ts'
import { watchStop } from '../../service/stop-file.ts'
import type { Animal, Setup, Wish } from '../api.ts'
import { createRecord, inWords, openRecords, questionsOf, recoverRecord } from '../integrity/recovery.ts'
import { type Home, openHome } from '../open-home.ts'
import { createInstructions, type Instructions } from '../setup/project-instructions.ts'
import { knock, providerFor } from '../setup/provider-pool.ts'
import { runLimits } from '../setup/run-limits.ts'
import { warnOfWeakKeys } from '../setup/weak-keys.ts'
import { mindWorkspace, realFolder, workspaceOf } from '../setup/workspace-folder.ts'
import { sandboxState } from '../toolset/sandbox-state.ts'
import type { HandsOptions } from '../toolset/tool-executor.ts'
import { builtInNames, type Hands, hasTools, type ToolWish, tenTools, unknownNames } from '../toolset/tool-selection.ts'
import { conversationFor } from './find-conversation.ts'
import { createOpenings } from './prompt-builder.ts'

/** @throws FailureError when memory, workspace, provider or conversation cannot be had; the message says what to do. */
export async function wake(setup: Setup, wish: Wish): Promise<Animal> {
  const { config, log } = setup
  if (!wish.provider) knock(setup)
  log('info', 'startup', { channel: wish.channel })
  log('info', 'config path', { path: setup.file ?? 'none' })
  log('info', 'workspace path', { path: config.workspaceDir })
  const home = homeOf(setup)
  try {
    warnOfWeakKeys(setup)
    return await plugIn(setup, wish, home)
  } catch (error) {
    const said = inWords(home.memory, error)
    home.release()
    throw said
  }
}

/** One for all conversations of this process that have the same home. @throws FailureError when its record cannot be used */
export function homeOf(setup: Setup): Home {
  const { config, paths, redactor } = setup
  return openHome({
    database: config.memory.path,
    key: `${paths.estop} ${config.receipts.enabled ? config.receipts.path : ''}`,
    redactor,
    watchStop: (onStop) => watchStop(paths.estop, onStop),
    open(redact) {
      const memory = openRecords(setup)
      return { memory, record: createRecord({ ...setup, redact }, memory) }
    },
    recover: (record) => recoverRecord(setup, record),
  })
}

async function plugIn(setup: Setup, wish: Wish, home: Home): Promise<Animal> {
  const { config, log, redactor } = setup
  const { memory, record, recorder } = home
  const { conversationId, folder, goesOn } = conversationFor(memory, wish.conversation, realFolder(config.workspaceDir))
  if (goesOn) {
    const { mustBeWhole } = await import('../integrity/resume-check.ts')
    await mustBeWhole({
      setup,
      memory,
      record,
      conversationId,
      sandbox: wish.sandbox,
      accept: wish.acceptAltered === true,
      threads: wish.threads ?? [],
    })
  }
  const tools = wish.tools ?? (await standingTools(setup))
  // Who only talks needs no folder.
  const workspace = hasTools(tools) ? workspaceOf(setup) : realFolder(config.workspaceDir)
  // It takes some milliseconds the first time, beside what follows here.
  const sandbox = wantsShell(setup, tools) ? sandboxState(setup, wish.sandbox) : undefined
  const answering = wish.provider ?? (await providerFor(setup, config.defaultProvider))
  const provider = tools.refusals ? (await import('../toolset/contract-refusals.ts')).saysNotPermitted(answering) : answering
  log('info', 'provider selected', { provider: provider.name, model: config.defaultModel })
  const instructions = instructionsFor(setup, wish, workspace)
  const hands = handsOf({ setup, memory, conversationId, ask: wish.ask, sandbox: wish.sandbox, tools, instructions })
  await mindNames(setup, tools)
  // Looked for at once, so that what is wrong with them is said before anything is asked.
  if (tools.more) await hands.get()
  const openings = createOpenings({
    setup,
    memory,
    conversationId,
    wish,
    provider,
    workspace,
    tools,
    hands: hands.get,
    instructions,
    sandbox,
  })
  const agent = createRunner({
    conversationId,
    channel: wish.channel,
    folder,
    ...(wish.sandbox === 'none' ? { sandbox: wish.sandbox } : {}),
    limits: runLimits(config),
    ...(await rulesFor(setup)),
    threads: wish.threads ?? [],
    approvalTtlMs: 600_000,
    model: config.defaultModel,
    opening: openings.next,
    ports: {
      provider,
      judge: async (call) => (await hands.get().catch(plainly)).judge(call),
      act: async (act, signal) => (await hands.get()).act(act, signal),
      recorder,
      questions: questionsOf(setup, memory),
      log,
      redact: redactor.json,
      redactStream: () => (redactor.count() === 0 ? plain : createStreamRedactor(redactor)),
      now: Date.now,
      after,
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    },
  })
  const stopListening = home.onStop((reason) => {
    log('warn', 'estop triggered', { reason })
    agent.stop(reason)
  })
  log('info', 'channel started', { channel: wish.channel })
  log('info', 'conversation started', { conversation: conversationId })
  return {
    agent,
    model: `${provider.name}/${config.defaultModel}`,
    memory,
    workspace,
    hands: hands.get,
    allowAlways: (proposal) => hands.made()?.allowAlways(proposal),
    isStanding: (proposal) => hands.made()?.isStanding(proposal) ?? false,
    async makeRoom(options) {
      if (!openings.isLong()) return
      const { makeRoom } = await import('./compact-conversation.ts')
      await makeRoom({ ...options, setup, memory, conversationId, provider: answering })
    },
    close() {
      stopListening()
      hands.made()?.close()
      home.release()
    },
  }
}

/** Whoever begins a conversation in a folder that is not trusted hears once what is not read. */
function instructionsFor(setup: Setup, { conversation, tell, systemPrompt }: Wish, workspace: string): Instructions | undefined {
  if (systemPrompt !== undefined) return undefined
  const offer = conversation.kind === 'new' ? (tell ?? ((line: string) => setup.log('info', line))) : undefined
  return createInstructions({ setup, workspace, ...(offer ? { offer } : {}) })
}

function wantsShell({ config }: Setup, { builtIn }: ToolWish): boolean {
  const { toolsAllow } = config.channels.cli
  return (builtIn === 'all' || builtIn.includes('shell')) && (toolsAllow?.includes('shell') ?? true)
}

/** The ten, and the operator's own that the configuration names. */
async function standingTools(setup: Setup): Promise<ToolWish> {
  if (setup.config.tools.executables.length === 0) return tenTools
  return { ...tenTools, more: (await import('../toolset/executable-tools.ts')).standingExecutables(setup) }
}

/** A name in the operator's list that means no tool is said at the start; with further tools, hands.ts knows them all. */
async function mindNames({ config, log }: Setup, { more }: ToolWish): Promise<void> {
  const { toolsAllow = [] } = config.channels.cli
  if (more || unknownNames(toolsAllow).length === 0) return
  const { warnOfUnknown } = await import('../toolset/unknown-tools.ts')
  warnOfUnknown(log, toolsAllow, builtInNames)
}

/** Tools and the gate before them are loaded by the first call: a turn that only talks does not pay for them. */
function handsOf(options: Omit<HandsOptions, 'policy'>): Once<Hands> {
  return once(async () => {
    mindWorkspace(options.setup.config)
    const [{ createHands }, { policyOf }] = await Promise.all([
      import('../toolset/tool-executor.ts'),
      import('../setup/effective-policy.ts'),
    ])
    const { config, paths, context } = options.setup
    return createHands({ ...options, policy: policyOf(config, paths, context.env) })
  })
}

/** The operator's own rules. They are looked for at every start, and loaded only where there are any. @throws FailureError usage on a rule that is not understood */
async function rulesFor(setup: Setup) {
  const folders = [`${setup.paths.home}/rules`, `${setup.config.workspaceDir}/.braidclaw/rules`]
  if (!folders.some((folder) => existsSync(folder))) return {}
  const { rulesInForce } = await import('../setup/operator-rules.ts')
  const { rules, journal } = rulesInForce(setup)
  return { rules, ...(journal ? { journalledRules: journal } : {}) }
}

/** Whoever shows an error of a run writes "error:" before it. */
function plainly(error: unknown): never {
  throw error instanceof Error && error.message.startsWith('error: ') ? new Error(error.message.slice(7)) : error
}

const plain = { push: (piece: string) => piece, flush: () => '' }

function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms)
  return () => clearTimeout(timer)
}
