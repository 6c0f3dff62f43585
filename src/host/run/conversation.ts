/** Assembles one conversation by hand, in this file only. It loads parts that only some turns need when a turn needs them. */

import { allowedTools, type LimitsConfig } from '../../config/config.ts'
import { after } from '../../kit/abort.ts'
import { errorText } from '../../kit/errors.ts'
import { type Lazy, lazy } from '../../kit/lazy.ts'
import type { Memory } from '../../memory/memory.ts'
import type { OneWriter } from '../../memory/record-writer.ts'
import { type Agent, createAgent as createRunner } from '../../runtime/create-agent.ts'
import type { Log, Message, Meter, ModelWindow, Provider } from '../../runtime/port.ts'
import { createStreamRedactor } from '../../security/redaction/redact.ts'
import type { ScheduleInChat } from '../../tools/builtin/schedule.ts'
import type { Budget, Payer } from '../access/cost/budget.ts'
import { askedModels, withAnswerRoom } from '../access/cost/model-window.ts'
import type { Conversation, ConversationChoice, ConversationOptions, ConversationRequest, Setup } from '../api.ts'
import type { Schedules } from '../contract/schedules-api.ts'
import type { Home } from '../open/open-home.ts'
import type { ChatPlace } from '../schedules/chat-schedules.ts'
import { loadRules, type Profile } from '../setup/profile.ts'
import { createInstructions } from '../setup/project-instructions.ts'
import { runLimits } from '../setup/run-limits.ts'
import { hasHooks, noteDaily } from '../setup/setup.ts'
import { assertWorkspaceExists, realFolder, workspaceOf } from '../setup/workspace-folder.ts'
import type { ToolRuntime, ToolSelection } from '../toolset/contract.ts'
import type { openHooks } from '../toolset/guests/hooks/open-hooks.ts'
import type { ToolLimit } from '../toolset/guests/skills/tool-limit.ts'
import type { ToolRuntimeOptions } from '../toolset/tool-executor.ts'
import { builtInNames, builtInTools, hasStandingTools, hasTools, warnOfUnknown } from '../toolset/tool-selection.ts'
import { type Begun, conversationFor } from './find-conversation.ts'
import type { Pictures } from './pictures.ts'
import { createPromptBuilder } from './prompt-builder.ts'
import { createTurns, withPersonCalls } from './turns.ts'

export type RunContext = {
  readonly home: Home
  readonly profile: Profile
  readonly which: ConversationChoice
  readonly options: Omit<ConversationOptions, 'setup'>
  readonly schedules: () => Promise<Schedules>
  /** Called once, when the conversation has ended. */
  readonly closed: () => void
}

export type OpenConversation = {
  readonly conversation: Conversation
  /** Stops the runs because the emergency stop reached this process. */
  stop(reason: string): void
}

/** @throws FailureError when workspace, provider or conversation cannot be used; the message says what to do */
export async function openConversation(opening: RunContext): Promise<OpenConversation> {
  const { home, profile, which, options, closed } = opening
  const { setup } = profile
  const { config, log } = setup
  const { memory } = home
  if (opening.options.agent) await opening.home.memory.files.prepare()
  const begun = await begin(opening)
  const { conversationId } = begun
  const tools = options.tools ?? (await standingTools(setup))
  // A conversation without tools needs no folder.
  const workspace = hasTools(tools) ? workspaceOf(setup) : realFolder(config.workspaceDir)
  // The first check takes some milliseconds, so it runs in parallel with the following steps.
  const sandbox = wantsShell(setup, tools) ? profile.sandbox(options.sandbox) : undefined
  const asked = options.provider ?? (await profile.provider())
  const window = home.windows.of(await askedModels(setup, asked))
  const pictures = lazy(async () => (await pictureFiles()).createPictures({ setup, memory, conversationId, tell: options.tell }))
  const answering = withPictures(withAnswerRoom(asked, window), pictures.get)
  const running: { agent?: Agent; preparing?: Promise<void>; closed?: true } = {}
  const thinking = hasTools(tools) ? whileThinking(answering, prepareTools) : answering
  const prepared = tools.more ? (await executables()).withNamedCalls(thinking) : thinking
  const provider = tools.refusals ? (await executables()).withContractRefusals(prepared) : prepared
  log('info', 'provider selected', { provider: provider.name, model: config.defaultModel })
  const request: ConversationRequest = { ...options, conversation: which }
  const instructions = instructionsFor(setup, request, workspace)
  const { sandboxes, guests } = home.services
  const { ask, dryRun } = options
  const own = { setup, conversationId, dryRun, runId: () => running.agent?.runId() }
  const hooks = hasHooks(setup) ? await hooksOf({ ...own, isNew: !begun.isContinuation, toolRuntime: () => toolRuntime.get() }) : undefined
  const toolRuntime = lazyToolRuntime(profile, {
    ...own,
    memory,
    hooks,
    ask,
    sandbox: options.sandbox,
    scheduleInChat:
      setup.access?.schedules && !dryRun ? scheduleIn(opening, { channel: setup.access.channel, recipient: conversationId }) : undefined,
    sandboxes,
    guests,
    tools,
    instructions,
    window,
  })
  function prepareTools(): void {
    if (running.closed) return
    const failed = (error: unknown) => log('debug', 'no tools ahead', { why: errorText(error) })
    running.preparing ??= toolRuntime
      .get()
      .then((runtime) => runtime.prepare())
      .catch(failed)
  }
  if (!tools.more) warnOfUnknown(setup.log, allowedTools(setup.config) ?? [], builtInNames)
  // Discovers extra tools eagerly so that configuration errors surface before the first prompt.
  if (tools.more) await toolRuntime.get()
  const prompting = {
    setup,
    memory,
    conversationId,
    request,
    window,
    workspace,
    tools,
    toolRuntime: toolRuntime.get,
    instructions,
    sandbox,
    sandboxState: () => profile.sandbox(options.sandbox),
  }
  const prompts = createPromptBuilder(prompting)
  const counting = async () => {
    const payer = payerOf(opening, conversationId)
    return { memory, payer, meter: (await metersOf(home, { ...setup, shared: options.budget }, payer))() }
  }
  const sideModel = async () => (await sideCalls()).counted(answering, await counting())
  const further = config.proofOfDoneModel ? await finderOf(sideModel, config.defaultModel) : undefined
  const person = withPersonCalls(provider)
  const asking = person.provider
  const agent = await runnerOf(opening, { begun, provider, asking, window, toolRuntime, further, opening: prompts.next })
  running.agent = agent
  const turns = createTurns({
    agent,
    queue: home.services.turns,
    most: config.limits.maxTurnsAtOnce,
    hooks,
    begins: person.begins,
    keep: async (given) => (await pictures.get()).keep(given),
  })
  const readsUntrusted = async () => void (await home.recorder.add(() => memory.labels.keep(conversationId, ['reads_untrusted'])))
  log('info', 'channel started', { channel: options.channel })
  log('info', 'conversation started', { conversation: conversationId })
  const endJobs = async (why: string) => toolRuntime.current()?.jobs.endAll(why)
  return {
    stop(reason) {
      agent.stop(reason)
      hooks?.interrupt()
      void endJobs(`emergency stop: ${reason}`)
    },
    conversation: {
      ...turns,
      async *run(...asked) {
        try {
          yield* hooks ? hooks.watch(turns.run(...asked)) : turns.run(...asked)
        } finally {
          if (turns.ending()?.code === 'budget') await endJobs('the budget is used up')
        }
      },
      jobs: () => toolRuntime.current()?.jobs,
      commands: async () => instructions?.commands(),
      id: conversationId,
      model: `${provider.name}/${config.defaultModel}`,
      workspace,
      approve: agent.approve,
      gate: agent.gate,
      gateClosed: agent.gateClosed,
      async changesOf(gateId) {
        const proposal = agent.gate(gateId)
        return proposal && toolRuntime.current()?.changesOf(proposal)
      },
      async interrupted() {
        const { interruptedTurn } = await import('./interrupted-turn.ts')
        const isIdempotent = async (name: string) => (await toolRuntime.get()).tools.some((tool) => tool.name === name && tool.idempotent)
        return interruptedTurn({ memory, conversationId, workspace, isIdempotent, hasChecks: options.checks !== undefined })
      },
      setMode: agent.setMode,
      addThread: agent.addThread,
      runId: agent.runId,
      usage: agent.usage,
      context: agent.context,
      unanswered() {
        const open = memory.approvals.list({ state: 'open' })
        return open.filter(({ runId, state }) => runId === agent.runId() && state === 'open').map(({ id }) => id)
      },
      allowAlways: (proposal) => toolRuntime.current()?.allowAlways(proposal),
      isStanding: (proposal) => toolRuntime.current()?.isStanding(proposal) ?? false,
      tools: toolRuntime.get,
      async search(request) {
        const { createSearch } = await import('../../memory/conversations/search-turns.ts')
        return createSearch(memory.store, Date.now)(request)
      },
      async compact(how) {
        if ((!how.now && !prompts.needsCompaction()) || (await hooks?.mayCompact()) === false) return
        const { compactConversation } = await sideCalls()
        return compactConversation({ ...how, ...(await counting()), setup, conversationId, provider: answering, window })
      },
      async requestParts() {
        await window.ready(new AbortController().signal)
        const known = { ...request, conversation: { kind: 'session', id: conversationId } } as const
        return { ...(await createPromptBuilder({ ...prompting, request: known }).next()), window: window.tokens() }
      },
      async proof(answer) {
        const runId = agent.runId()
        const isOff = config.proofOfDone === 'off' || runId === undefined || answer === undefined
        if (isOff || !(further || mayClaim(answer))) return []
        try {
          return await (await proofs()).marksOfRun({ setup, journal: memory.journal, conversationId, runId, answer, further })
        } catch (error) {
          log('warn', 'claims not marked', { why: errorText(error) })
          return []
        }
      },
      async readPictures(pictures, signal) {
        const { readPictures } = await sideCalls()
        return readPictures({ ...(await counting()), profile, marked: readsUntrusted, pictures, signal })
      },
      sideModel,
      readsUntrusted,
      async close() {
        running.closed = true
        await turns.close()
        hooks?.interrupt()
        // A half-made sandbox would leave its folders behind.
        await running.preparing
        await (await toolRuntime.settled())?.close()
        closed()
      },
    },
  }
}

const hasPictures = (message: Message) => message.role !== 'assistant' && message.pictures !== undefined

/** Gives the provider the bytes of the pictures in a request. */
function withPictures(provider: Provider, load: () => Promise<Pictures>): Provider {
  async function* chat(...[request, signal]: Parameters<Provider['chat']>) {
    yield* provider.chat((await load()).shownTo(provider, request), signal)
  }
  return { ...provider, chat: (request, signal) => (request.messages.some(hasPictures) ? chat : provider.chat)(request, signal) }
}

/** A model that answers at once needs no preparation. */
const thinkingMs = 50

/** Calls `prepare` while the model thinks about its reply. */
function whileThinking(provider: Provider, prepare: () => void): Provider {
  return {
    ...provider,
    chat(request, signal) {
      setTimeout(prepare, thinkingMs).unref()
      return provider.chat(request, signal)
    },
  }
}

/** Finds the conversation, and checks its record when it continues an earlier one. */
async function begin({ home, profile, which, options }: RunContext): Promise<Begun> {
  const { memory, record } = home
  const begun = conversationFor(memory, which, realFolder(profile.setup.config.workspaceDir))
  if (!begun.isContinuation) return begun
  const { assertIntact } = await import('../records/integrity/resume-check.ts')
  const { conversationId } = begun
  const { sandbox, acceptAltered = false, threads = [] } = options
  await assertIntact({ setup: profile.setup, memory, record, conversationId, sandbox, threads, accept: acceptAltered })
  return begun
}

type Runner = {
  readonly begun: Begun
  readonly provider: Provider
  /** Asked for each reply of a run; a person's calls may come before those of the model. */
  readonly asking: Provider
  readonly window: ModelWindow
  readonly toolRuntime: Lazy<ToolRuntime>
  readonly further: Awaited<ReturnType<typeof finderOf>> | undefined
  readonly opening: Parameters<typeof createRunner>[0]['opening']
}

async function runnerOf(context: RunContext, { begun, provider, asking, window, toolRuntime, further, opening }: Runner): Promise<Agent> {
  const { home, profile, options } = context
  const { token } = profile.setup.access ?? {}
  const { config, log, redactor } = profile.setup
  const payer = payerOf(context, begun.conversationId)
  const meters = await metersOf(home, { ...profile.setup, shared: options.budget }, payer)
  const running: { agent?: Agent; limit?: ToolLimit | undefined } = {}
  const runId = () => running.agent?.runId()
  const about = { ...begun, setup: profile.setup, journal: home.memory.journal, further, checks: options.checks, runId }
  running.agent = createRunner({
    conversationId: begun.conversationId,
    channel: options.channel,
    version: profile.setup.context.version,
    folder: begun.folder,
    ...(options.sandbox === 'none' ? { sandbox: options.sandbox } : {}),
    agent: options.agent,
    token,
    limits: runLimits(config, profile.setup.access),
    ...(await rulesFor(profile)),
    threads: options.threads ?? [],
    checks: config.proofOfDone === 'require' ? (await proofs()).withProof(about) : options.checks,
    approvalTtlMs: 600_000,
    model: config.defaultModel,
    async opening(continues, allowedTools) {
      running.limit = allowedTools && (await import('../toolset/guests/skills/tool-limit.ts')).toolLimit(allowedTools)
      const context = await opening(continues)
      return running.limit ? { ...context, tools: context.tools.filter(running.limit.offers) } : context
    },
    ports: {
      provider: asking,
      window,
      meter: meters,
      summarise: (runId) => async (asked, signal) => {
        const { turnSummariser } = await sideCalls()
        return turnSummariser({ setup: profile.setup, memory: home.memory, provider, payer, meter: meters(runId) })(asked, signal)
      },
      judge: async (call) => {
        const judged = await (await toolRuntime.get().catch(stripErrorPrefix)).judge(call)
        return running.limit?.narrowed(call, judged) ?? judged
      },
      act: async (act, signal) => {
        const { act: applyEffect } = await toolRuntime.get()
        await shown()
        return applyEffect(act, signal)
      },
      changes: {
        apply: async (...given) => (await toolRuntime.get()).changes.apply(...given),
        drop: (event) => toolRuntime.current()?.changes.drop(event),
      },
      recorder: home.recorder,
      questions: home.services.approvals,
      piece: home.services.events.piece,
      log,
      redact: redactor.json,
      redactStream: () => createStreamRedactor(redactor),
      now: Date.now,
      after,
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    },
  })
  return running.agent
}

/** Tells cheaply whether an answer could claim anything, so that the grammar loads only for an answer that does. Both read its beginning. */
export function mayClaim(answer: string | undefined): answer is string {
  return answer !== undefined && claiming.test(answer.slice(0, 12_000))
}

const claiming =
  /[✅✔👍🟢]|(?:^|[.!?:(,;*|#–—-]\s*|\b(?:i|we|and|then|also|both|has|have|been|was|were|'ve|is|are|now|new|files?|all|changes|dependencies|release) )(?:\w+ly )?(?:\w{2,}ed|wrote|written|rewr\w+|made|put|set|split|sent)\b|\b(?:tests?|suite|specs?|pass\w*|green|succe\w+|builds?|built|compil\w+|type-?check\w*|typescript|types|tsc|mypy|pyright|lint\w*|eslint|biome|ruff|clippy|flake8|prettier|rubocop|clean\w*|exit\w*|(?:no|zero|0|without)(?: \w+){0,3} (?:errors?|warnings?|failures?|issues|problems)|error-free|none of|no longer|ran|run|running|executed|started|used|verif\w+|confirm\w*|check\w*|done|finish\w+|complete\w*|works?|working|functional|operational|ready|up to date|fix\w*|resolve[sd]?|solve[sd]?|installed|gone|in place|applied|all set|(?:my|a|an|the) commit|commits?|PR|pull request|tag|branch|nothing fails|new|now|got|change|edit|patch|overwrote|became|written|modified|happy|there)\b/imu

const proofs = () => import('../records/claims/proof-of-run.ts')

const finderOf = async (sideModel: () => Promise<Provider>, model: string) =>
  (await import('../records/claims/model-claims.ts')).claimFinder(sideModel, model)

/** Loads what runs hooks, only where there are some. @throws FailureError `usage` on an invalid hook */
const hooksOf = async (options: Parameters<typeof openHooks>[0]) =>
  (await import('../toolset/guests/hooks/open-hooks.ts')).openHooks(options)

function scheduleIn({ schedules }: RunContext, chat: ChatPlace): ScheduleInChat {
  return async (input) => {
    const { scheduleInChat } = await import('../schedules/chat-schedules.ts')
    return scheduleInChat(await schedules(), chat)(input)
  }
}

/** Imported on demand: most conversations are short and have no pictures. */
const sideCalls = () => import('./side-calls.ts')
const pictureFiles = () => import('./pictures.ts')

function payerOf({ profile: { setup }, options: { agent, channel } }: RunContext, conversationId: string): Omit<Payer, 'runId'> {
  const { token } = setup.access ?? {}
  return { agent: agent?.id ?? setup.config.defaultAgent ?? 'default', conversationId, channel, ...(token ? { token } : {}) }
}

/** Says once, to the person who begins a conversation in an untrusted folder, which files are not read. */
function instructionsFor(setup: Setup, { conversation, tell, systemPrompt }: ConversationRequest, workspace: string) {
  // A project's instructions are for its operator, and people in a chat could ask for them.
  if (systemPrompt !== undefined || setup.access?.profile === 'chat') return undefined
  const offer = tell ? (note: string) => noteDaily(setup, note, tell) : (note: string) => setup.log('info', note)
  return createInstructions({ setup, workspace, offer: conversation.kind === 'new' ? offer : undefined })
}

function wantsShell({ config }: Setup, { builtIn }: ToolSelection): boolean {
  const toolsAllow = allowedTools(config)
  return (builtIn === 'all' || builtIn.includes('shell')) && (toolsAllow?.includes('shell') ?? true)
}

const executables = () => import('../toolset/executable-tools.ts')

/** The built-in tools, and the operator's own that the configuration names. */
export async function standingTools(setup: Setup): Promise<ToolSelection> {
  if (!hasStandingTools(setup)) return builtInTools
  return { ...builtInTools, more: (await executables()).standingExecutables(setup) }
}

/** The first call loads the tools and their gate, so that a turn without calls does not pay for them. */
function lazyToolRuntime(profile: Profile, options: Omit<ToolRuntimeOptions, 'policy'>): Lazy<ToolRuntime> {
  return lazy(async () => {
    assertWorkspaceExists(options.setup.config)
    const [{ createToolRuntime }, policy] = await Promise.all([import('../toolset/tool-executor.ts'), profile.policy()])
    return createToolRuntime({ ...options, policy })
  })
}

/** Every start looks for rule folders and loads the parser only when there is one. @throws FailureError `usage` on an invalid rule */
async function rulesFor({ setup, rules: shared }: Profile) {
  const loaded = await loadRules(setup)
  if (!loaded) return {}
  const { rules, journal } = shared(loaded)
  return { rules, journalledRules: journal }
}

/** Removes "error: " because the code that shows a run's error adds it again. */
function stripErrorPrefix(error: unknown): never {
  throw error instanceof Error && error.message.startsWith('error: ') ? new Error(error.message.slice(7)) : error
}

/** A person who saw the model's text before this call may have cancelled: the cancellation must take effect before the call runs. */
function shown(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/** Returns the meter of a run, or, without a run id, of the conversation's other calls. */
type Meters = (runId?: string) => Meter | undefined

type MeterStore = { readonly memory: Pick<Memory, 'store'>; readonly recorder: Pick<OneWriter, 'add'> }

type Configured = { readonly config: { readonly limits: LimitsConfig }; readonly log: Log; readonly shared: Budget | undefined }

/**
 * Provides the meters of a conversation's model calls, and loads them only where the configuration has a budget, so that other homes pay
 * nothing.
 */
async function metersOf(
  { memory, recorder }: MeterStore,
  { config, log, shared }: Configured,
  payer: Omit<Payer, 'runId'>,
): Promise<Meters> {
  const { limits } = config
  if (!hasBudget(limits) && !shared) return () => undefined
  const { meterFor } = await import('../access/cost/budget.ts')
  const options = { limits, memory, add: recorder.add, log, now: Date.now, warned: new Set<string>(), shared }
  return (runId) => meterFor(options, { ...payer, ...(runId ? { runId } : {}) })
}

function hasBudget(limits: LimitsConfig): boolean {
  const perDay = [limits.dailyTokens, limits.dailyUsd, limits.agentDailyTokens, limits.agentDailyUsd]
  const perSource = [limits.channelDailyTokens, limits.channelDailyUsd, limits.tokenDailyTokens, limits.tokenDailyUsd]
  const lasting = [limits.maxRunTokens, limits.maxRunUsd, limits.maxConversationTokens, limits.maxConversationUsd]
  return [...perDay, ...perSource, ...lasting].some((limit) => limit !== undefined)
}
