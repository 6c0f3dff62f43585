/** Runs tools behind the gate: it lists the tools for the model, judges each call, and executes exactly what was judged. */

import { relative } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import { sha256 } from '../../kit/sha256.ts'
import { cut, visible } from '../../kit/text.ts'
import { createResults } from '../../memory/conversations/results.ts'
import { createSearch } from '../../memory/conversations/search-turns.ts'
import type { Memory } from '../../memory/memory.ts'
import { ruleOfTwo } from '../../runtime/behaviours/guards/egress.ts'
import type { Change } from '../../runtime/changes.ts'
import type { Judgement, Proposal, ToolOutcome } from '../../runtime/event.ts'
import type { Act, AskLine, ChangePorts, Judge, ModelWindow, Picture, Question, Tool } from '../../runtime/port.ts'
import { resultId } from '../../runtime/request/turn-messages.ts'
import type { FollowedPath, SandboxKind } from '../../sandbox/contract.ts'
import { alwaysKey, hostsCovered } from '../../security/always.ts'
import { pathRuleFor } from '../../security/changes/standing-changes.ts'
import { createGate, type Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import { judgePath } from '../../security/targets/path.ts'
import { loadCommandJudge } from '../../security/touch.ts'
import { readStop } from '../../service/stop-file.ts'
import type { ScheduleInChat } from '../../tools/builtin/schedule.ts'
import { createTools } from '../../tools/list.ts'
import { cleanEnvironment } from '../../tools/process.ts'
import { createExecutor, type ExecutorOptions, type KeepResult, type ResultRoom, ranOn } from '../../tools/run-tool.ts'
import { fail, toolFrom } from '../../tools/tool-kind.ts'
import { disk } from '../../workspace/disk.ts'
import { openWorkspace } from '../../workspace/workspace.ts'
import type { Setup } from '../api.ts'
import { allowingToo, resolveExecutable } from '../setup/effective-policy.ts'
import type { Instructions } from '../setup/project-instructions.ts'
import { shellTimesOf } from '../setup/run-limits.ts'
import { hasRules } from '../setup/setup.ts'
import {
  createCommandSpawn,
  createRepositoryReader,
  dryRunSpawn,
  neverApplied,
  refusedInDryRun,
  withGitFailure,
} from '../transactions/command-spawn.ts'
import type { Sweep } from '../transactions/direct-sweep.ts'
import type { StandingAnswers } from '../transactions/reviewed-views.ts'
import type { GuestConnections, SourcedTool, ToolDeps, ToolRuntime, ToolSelection } from './contract.ts'
import { changesOfFileCall, createFileOriginals, loadReviewedViews } from './file-call-changes.ts'
import type { ToolPorts } from './guests/hooks/hook.ts'
import { createGet } from './network.ts'
import { createConfinement, type SandboxPool } from './sandbox/command-sandbox.ts'
import { createJobs } from './sandbox/jobs.ts'
import { builtInTools, optionalTools, warnOfUnknown } from './tool-selection.ts'

export type ToolRuntimeOptions = {
  readonly setup: Setup
  readonly policy: Policy
  readonly memory?: Memory
  readonly conversationId: string
  /** Returns the current run, for the record of what commands change. */
  readonly runId?: () => string | undefined
  readonly ask?: AskLine
  readonly sandbox?: SandboxKind
  /** Absent: no tool schedule. */
  readonly scheduleInChat?: ScheduleInChat | undefined
  /** Keeps every effect of a call away from the workspace. */
  readonly dryRun?: boolean
  /** The host's pool; absent: the runtime creates its own sandbox. */
  readonly sandboxes?: SandboxPool
  /** The host's connections to foreign servers; absent: the runtime closes its own. */
  readonly guests?: GuestConnections
  readonly tools?: ToolSelection
  readonly instructions?: Instructions
  readonly hooks?: { around(ports: ToolPorts): ToolPorts } | undefined
  /** Results follow the window of the model; absent: only the configured limit holds. */
  readonly window?: Pick<ModelWindow, 'tokens' | 'scale'>
}

/** A result has at least this room, however small the window is. */
const leastTokens = 128

/** The tools that are active until the next refresh. */
type ActiveTools = {
  readonly found: readonly SourcedTool[]
  readonly all: readonly Tool[]
  readonly tools: readonly Tool[]
  readonly policy: Policy
  readonly execute: ReturnType<typeof createExecutor>
}

/** Creates the tool runtime. The workspace must exist (workspace-folder.ts). It waits for the source of extra tools, if there is one. */
export async function createToolRuntime({
  setup,
  policy,
  memory,
  conversationId,
  runId = () => undefined,
  ask,
  sandbox = 'auto',
  dryRun = false,
  scheduleInChat,
  sandboxes,
  guests,
  tools: { builtIn, more } = builtInTools,
  instructions,
  hooks,
  window,
}: ToolRuntimeOptions): Promise<ToolRuntime> {
  const { config, paths, log, redactor, context } = setup
  const { limits } = config
  const results = memory && createResults(memory.store)
  const originals = createFileOriginals(setup, policy, { conversation: conversationId, run: () => runId() ?? '', results })
  const workspace = openWorkspace({
    root: policy.workspace,
    check: (path, access) => judgePath({ path, access, cwd: policy.workspace, policy }),
    originals,
  })
  const env = cleanEnvironment({ home: policy.home, ...(context.env.TZ ? { timeZone: context.env.TZ } : {}) })
  const state: { answers?: StandingAnswers; gate?: Gate; loading?: Promise<Gate>; kit?: ActiveTools } = {}
  const standing = new Set<string>()
  const confinement = (sandboxes?.confinement ?? createConfinement)(sandbox, { setup, policy })
  const sweep: Sweep = async (plan, run) => (await views.get()).sweep(plan, run)
  const commands = createCommandSpawn({ setup, policy, conversationId, confinement, sweep })
  /** A command that names a folder of skills sees it. */
  const spawnWithSkills: typeof commands.spawn = async (plan) => {
    const namesSkill = plan.argv.some((word) => word.includes('/skills/'))
    return commands.spawn((namesSkill && (await instructions?.skills())?.shownTo(plan)) || plan)
  }
  const spawn = dryRun ? dryRunSpawn({ spawn: spawnWithSkills, hasViews: confinement.mode }) : spawnWithSkills
  const views = lazy(async () => {
    const { createReviewedViews, createStandingAnswers } = await loadReviewedViews()
    // People on a channel have no share in the operator's standing answers.
    if (memory && !setup.access) state.answers = createStandingAnswers(memory)
    return createReviewedViews({
      setup,
      policy: kit().policy,
      conversationId,
      runId: () => runId() ?? '',
      gate,
      dryRun,
      standing: state.answers,
    })
  })
  const jobs = createJobs({
    workspace: policy.workspace,
    spawn,
    mode: confinement.mode,
    shareNetwork: commands.shareNetwork,
    redactor,
    log,
    shownBytes: () => room().bytes,
    limits,
  })
  /** The calls that started a command in the background: its changes are judged as theirs. */
  const starts = new Map<string, Parameters<Act>[0]>()
  const get = createGet({ policy, limits })
  const own = createTools({
    files: workspace,
    spawn,
    // A caller that lists its tools without shell_output could not read what they print.
    ...(builtIn === 'all' || builtIn.includes('shell_output') ? { jobs } : {}),
    planOf: (hash) => state.gate?.plan(hash)?.commands[0],
    env,
    shellTimes: shellTimesOf(limits),
    get,
    search: ({ query, limit }) =>
      memory
        ? createSearch(memory.store, Date.now)({ query, limit, ...(setup.access?.memory === 'own' ? { within: conversationId } : {}) })
        : [],
    ask: ask && ((question, signal) => ask(`${question}\n> `, signal)),
    now: Date.now,
    maxOutputBytes: limits.maxResultBytes,
    shownBytes: () => room().bytes,
    scheduleInChat,
    result: (id) => {
      if (!results) return { ok: false, message: 'this conversation keeps no results' }
      return id === undefined ? { ok: true, text: results.list(conversationId) } : results.find(conversationId, id)
    },
  })
  /** The built-in tools need no discovery: the model sees them. */
  async function discover(intent: string): Promise<readonly string[]> {
    const { lineOf, openDiscovery } = await import('./discover.ts')
    const found = await openDiscovery(setup, { workspace: policy.workspace, tools: kit().found })
    return found.search(intent).map(lineOf)
  }
  const noSkill = fail('there are no skills here')
  const projectDeps = { discover, skill: async (name: string) => (await instructions?.skills())?.read(name) ?? noSkill }
  const further = (await instructions?.tools()) ?? []
  const browser = lazy(async () => (await import('./sandbox/browser-tool.ts')).openPages({ policy, limits, env: context.env }))
  const pages = async () => (await browser.get()).pages()
  const optional = (await optionalTools(setup)).map((kind) => toolFrom(kind, { get, pages, files: workspace }))
  const selected = [...own, ...further.map((kind) => toolFrom(kind, projectDeps)), ...optional].filter(
    ({ name }) => (builtIn === 'all' || builtIn.includes(name)) && (scheduleInChat !== undefined || name !== 'schedule'),
  )

  function kitOf(found: readonly SourcedTool[]): ActiveTools {
    const names = found.map(({ name }) => name)
    const wider = allowingToo(policy, names)
    const all = [...selected, ...found]
    const tools = all.filter(({ name }) => wider.toolsAllow?.includes(name) ?? true)
    const keep = tools.some(({ name }) => name === 'result_read') ? keepResult : undefined
    const keepPicture =
      results && ((picture: Picture) => results.keepPicture(conversationId, picture, Date.now(), config.memory.resultsMaxBytes))
    const spoken = { log, room, keep, keepPicture, redact: redactor.text, conversationId, timeouts: timeoutsOf(setup, tools) }
    return { found, all, tools, policy: wider, execute: createExecutor({ tools, ...spoken }) }
  }

  /** A result gets an eighth of the model's window at most, of which a token has some three bytes. */
  function room(): ReturnType<ResultRoom> {
    const tokens = window ? Math.max(leastTokens, Math.floor(window.tokens() / window.scale() / 8)) : limits.maxOutputBytes
    return { bytes: Math.min(limits.maxOutputBytes, tokens * 3), tokens, wholeBytes: limits.maxResultBytes }
  }

  function keepResult(callId: string, text: string): ReturnType<KeepResult> {
    const run = runId()
    if (results === undefined || run === undefined) return undefined
    results.keep({ runId: run, callId, conversationId, text }, Date.now(), config.memory.resultsMaxBytes)
    return (offset) => `result_read {"id":${JSON.stringify(resultId(run, callId))},"offset":${offset}} reads on`
  }
  /** An executable that the operator named reaches what allowed_domains lists; a command, or a plugin, only the hosts of its plan. */
  const spawnTool: typeof spawn = (plan) => spawn({ ...plan, network: plan.network ?? policy.allowedDomains })
  const ending = new AbortController()
  const connections: GuestConnections = guests ?? {}
  const toolDeps: ToolDeps = {
    spawn: spawnTool,
    env,
    maxOutputBytes: limits.maxResultBytes,
    ready: confinement.mode,
    sandboxOn: (folder: string) =>
      (sandboxes?.confinement ?? createConfinement)(sandbox, { setup, policy: { ...policy, workspace: folder } }),
    closed: ending.signal,
    sandbox,
    guests: connections,
    ask,
  }
  const findExtraTools = async () => (await more?.(toolDeps)) ?? []
  state.kit = kitOf(await findExtraTools())
  const kit = () => state.kit ?? kitOf([])
  if (more) {
    const names = [...own, ...kit().found].map(({ name }) => name)
    warnOfUnknown(log, policy.toolsAllow ?? [], names)
  }

  async function load(): Promise<Gate> {
    const runFiles = () => import('../../security/command/run-files.ts')
    state.gate = createGate({
      policy: kit().policy,
      tools: kit().all,
      estop: () => readStop(paths.estop),
      resolve: resolveExecutable,
      disk,
      conversation: conversationId,
      commands: confinement.mode,
      always: (key) => setup.access === undefined && memory?.approvals.hasRule('shell', key) === true, // they were given at the operator's own terminal
      targetsOf: async (writes) => (await runFiles()).digestsOf(writes, workspace.readBytes),
      runsOf: async (runs) => (await runFiles()).digestsOfRun(runs, workspace.readBytes),
      repository: createRepositoryReader(setup, policy),
      aroundWrites: async () => (await views.get()).aroundWrites(),
      async ruledCall(call, path) {
        const set = hasRules(setup) && sourced(call.name) === undefined ? changesOfFileCall(call, workspace) : undefined
        return set && (await views.get()).ruledCall(set, relative(policy.workspace, path))
      },
      envHash: sha256(JSON.stringify(env)),
      secrets: redactor,
    })
    return state.gate
  }
  const gate = () => (state.loading ??= load())
  const judge: Judge = async (call) => {
    const judged = await (await gate()).judge(call)
    const next =
      judged.verdict === 'allow' ? state.gate?.plan(judged.plan)?.commands.find(({ network }) => network === undefined) : undefined
    if (next !== undefined) void commands.warm(next).catch((error: unknown) => log('debug', 'no sandbox ahead', { why: String(error) }))
    return bound(judged, sourced(call.name))
  }
  const sourced = (name: string) => kit().found.find((tool) => tool.name === name)

  /** A file tool is judged and writes while no change set enters the workspace; a deletion is a change set itself. */
  const act: Act = async (action, signal) => {
    const { call, judgement } = action
    if (call.name === 'file_delete') await originals.ready()
    const isWrite = judgement.writes.length > 0 && call.name !== 'shell' && call.name !== 'file_delete' && sourced(call.name) === undefined
    return isWrite && !dryRun ? originals.alone(() => actAsJudged(action, signal)).catch(failed) : actAsJudged(action, signal)
  }

  /** Checks the call again right before execution: a stop, a new policy or a changed target revokes an approval. */
  const actAsJudged: Act = async (action, signal) => {
    const { call, judgement } = action
    const refusal = (await gate()).holds(call, judgement.plan) ? undefined : changed(judgement.plan, await judge(call))
    if (refusal !== undefined) return refusal
    const tool = kit().tools.find(({ name }) => name === call.name)
    const dry = dryRun ? refusedInDryRun(tool, call.input, call.name === 'shell' || isWithoutEffects(sourced(call.name))) : undefined
    if (dry !== undefined) return dry
    if (call.name === 'shell' && call.input.background === true) starts.set(call.id, action)
    const ran = await withGitFailure(policy.workspace, call.name, await kit().execute(action, signal))
    if (ran.status === 'allowed') jobs.follow(judgement.writes.map((path) => ({ path: relative(policy.workspace, path) })))
    const view = ran[ranOn]
    if (view === undefined) return withInstructions(action, ran)
    const start = starts.get(jobs.callOf(view) ?? '')
    return withInstructions(action, await (await views.get()).settle(action, ran, signal, start))
  }

  /** Carries out what was decided about the changes of a command. */
  const changePorts: ChangePorts = {
    async apply(event, signal, ran) {
      const settled = await views.get()
      const changed = settled.changesOf(event.id)?.changes ?? []
      const outcome = await settled.apply(event, signal, ran)
      if (outcome.status !== 'allowed') return outcome
      jobs.follow(changed.map(({ before, ...change }): FollowedPath => ({ ...change, was: before ?? 'nothing' })))
      return results ? withSeen(outcome, changed, results.seenFiles(conversationId)) : outcome
    },
    drop: (event) => views.current()?.drop(event),
  }
  const changes = dryRun ? neverApplied(changePorts) : changePorts

  /** Adds the instructions of folders that the call touched for the first time. */
  async function withInstructions<Outcome extends ToolOutcome>({ judgement }: Parameters<Act>[0], outcome: Outcome): Promise<Outcome> {
    if (instructions === undefined) return outcome
    const paths = state.gate?.plan(judgement.plan)?.paths.map(({ path }) => path) ?? []
    const found = await instructions.below([...paths, ...judgement.writes])
    return found.length === 0 ? outcome : { ...outcome, instructions: found }
  }

  /** Once something private was read, a yes to a host that was given before does not cover what is sent there now. */
  const couldLeak = ({ rule, labels }: Judgement) =>
    rule === ruleOfTwo || (labels?.includes('sends') === true && memory?.labels.of(conversationId).includes('reads_private') === true)

  const coveredBy = ({ plan }: Judgement) => hostsCovered(state.gate?.plan(plan)?.urls ?? [])

  /** Names what an "always" covers: the external tool in this version, or the built-in tool with the hosts of this call. */
  function standingKey({ call, judgement }: Proposal): string | undefined {
    // A rule of the project and a hook ask each time.
    if (judgement.rule.startsWith('rule.') || isAskedByHook(judgement)) return undefined
    const tool = sourced(call.name)
    if (tool) return JSON.stringify([call.name, tool.sha256])
    return state.gate?.plan(judgement.plan) && JSON.stringify([call.name, ...(namesAsked(judgement) ?? []), ...coveredBy(judgement)])
  }

  /** Where the name of a file asks, "always" covers this name at this place. @returns paths relative to the workspace */
  function namesAsked({ rule, plan }: Judgement): readonly string[] | undefined {
    if (rule !== 'changes.not_harmless') return undefined
    return state.gate
      ?.plan(plan)
      ?.paths.flatMap(({ access, path, real }) => (access === 'write' ? [relative(policy.workspace, real ?? path)] : []))
  }

  /**
   * Stores a rule for a shell command permanently; an approval of another tool holds for this conversation; a command without a rule is
   * asked again.
   */
  function allowAlways({ call, judgement, changes }: Question): string | undefined {
    if (isAskedByHook(changes ?? judgement)) return undefined
    if (changes) return state.answers?.accept(changes.digest)
    const names = namesAsked(judgement)
    const rule = names && pathRuleFor(policy.workspace, names)
    if (rule && state.answers) {
      state.answers.offer(judgement.plan, rule)
      return state.answers.accept(judgement.plan)
    }
    const always = state.gate?.plan(judgement.plan)?.always
    if (call.name !== 'shell') {
      const key = standingKey({ call, judgement })
      if (key === undefined) return undefined
      standing.add(key)
      return `allowed from now on in this conversation: ${[call.name, ...(names ?? []), ...coveredBy(judgement)].join(' ')}`
    }
    if (!always || !memory) return undefined
    memory.approvals.addRule({ tool: 'shell', scope: alwaysKey(always), by: 'terminal' })
    return `always allowed from now on: ${always.executable} ${always.subcommand}`.trim()
  }

  async function refresh(): Promise<readonly Tool[]> {
    const found = await findExtraTools()
    if (found !== kit().found) Object.assign(state, { kit: kitOf(found), gate: undefined, loading: undefined })
    return kit().tools.filter(({ name }) => sourced(name)?.isHidden !== true)
  }

  return {
    get all() {
      return kit().all
    },
    get tools() {
      return kit().tools
    },
    get policy() {
      return kit().policy
    },
    ...(hooks ? hooks.around({ judge, act, changes }) : { judge, act, changes }),
    gate,
    files: workspace,
    spawn,
    async prepare() {
      const runsCommands = kit().tools.some(({ name }) => name === 'shell')
      await Promise.all([gate(), ...(runsCommands ? [loadCommandJudge(), confinement.mode()] : [])])
    },
    allowAlways,
    changesOf: ({ call, changes }) =>
      changes ? views.current()?.changesOf(call.id) : sourced(call.name) === undefined ? changesOfFileCall(call, workspace) : undefined,
    isStanding: (proposal) => proposal.changes === undefined && !couldLeak(proposal.judgement) && standing.has(standingKey(proposal) ?? ''),
    refresh,
    jobs,
    async close() {
      ending.abort()
      if (guests === undefined) await connections.mcp?.close()
      await jobs.endAll('the conversation ended')
      await browser.current()?.close()
      commands.close()
      views.current()?.close()
      confinement.close()
    },
  }
}

/** An "always" is an answer to the gate; a hook asks each time. */
const isAskedByHook = ({ rule }: { readonly rule: string }) => rule.startsWith('hook.')

/** The sources of external tools that no sandbox confines. */
const unconfined: { readonly [source: string]: string | undefined } = { claw: 'the claw', program: 'the calling program' }

/** Tells whether a private view takes all that it does. */
function isWithoutEffects(tool: SourcedTool | undefined): boolean {
  return tool !== undefined && unconfined[tool.source] === undefined && !tool.hosts?.length && tool.guest === undefined
}

/** Binds the plan of an external tool to its file and bytes, so that an approval of one version does not cover another. */
function bound(judged: Judgement, tool: SourcedTool | undefined): Judgement {
  if (!tool || judged.verdict === 'deny') return judged
  const why = tool.changed()
  if (why !== undefined) return { ...judged, verdict: 'deny', rule: 'tool.changed', reason: `${visible(why)}; nothing was run` }
  const { source, sha256: bytes } = tool
  const place = unconfined[source]
  const kind =
    tool.guest ??
    (place ? `a tool of ${place}: what it does is neither confined nor foreseen` : 'an executable: what it does is confined, not foreseen')
  const reason = judged.reason.startsWith('touches neither') ? kind : judged.reason
  const plan = sha256(JSON.stringify([judged.plan, source, bytes]))
  // It runs outside the sandbox, or has hosts of its own, so it may read and send anything; who names its risk low vouches for it.
  const isSending = (place || tool.hosts?.length) && judged.risk !== 'low'
  const read = ['reads_untrusted'] as const
  const labels = isSending
    ? { labels: [...read, 'sends'] as const }
    : tool.guest
      ? { labels: [...new Set([...(judged.labels ?? []), ...read])] }
      : {}
  return { ...judged, ...labels, plan, reason, summary: cut(`${judged.summary} [${visible(source)}, sha256 ${bytes.slice(0, 12)}]`, 800) }
}

/** Adds what a command made of files that the conversation knows. */
function withSeen(outcome: ToolOutcome, changes: readonly Change[], known: ReadonlyMap<string, string>): ToolOutcome {
  const seen = changes.flatMap(({ path, before, after }) =>
    known.has(path) && after?.sha256 ? [{ path, sha256: after.sha256, was: before?.sha256 ?? '' }] : [],
  )
  return seen.length === 0 ? outcome : { ...outcome, metadata: { ...outcome.metadata, seen: seen.slice(0, 100) } }
}

function failed(error: unknown): ToolOutcome {
  return { status: 'failed', output: '', error: `nothing was run: ${errorText(error)}` }
}

function changed(plan: string, again: Awaited<ReturnType<Judge>>): ToolOutcome | undefined {
  if (again.rule === 'tool.changed') return { status: 'denied', output: '', error: `approval.stale: ${again.reason}` }
  if (again.verdict === 'deny') return { status: 'denied', output: '', error: `${again.rule}: ${again.reason}` }
  if (again.plan === plan) return undefined
  return { status: 'denied', output: '', error: 'approval.stale: what would be executed changed after it was judged; ask again' }
}

/** Returns each tool's timeout in milliseconds, and the setting that raises it. */
export function timeoutsOf({ config: { limits } }: Setup, tools: readonly Tool[]): NonNullable<ExecutorOptions['timeouts']> {
  const { longestS } = shellTimesOf(limits)
  const usual = { seconds: limits.toolTimeoutS, advice: 'limits.tool_timeout_s' }
  const special: { readonly [tool: string]: typeof usual } = {
    shell: {
      seconds: limits.shellTimeoutS,
      advice: `limits.shell_timeout_s; a call may ask for "timeout" up to ${longestS} s, limits.shell_timeout_max_s`,
    },
    http: { seconds: limits.httpTimeoutS, advice: 'limits.http_timeout_s' },
    web_search: { seconds: limits.httpTimeoutS, advice: 'limits.http_timeout_s' },
  }
  const limitOf = (name: string) => (Object.hasOwn(special, name) ? special[name] : undefined) ?? usual
  return Object.fromEntries(
    tools
      .filter(({ name }) => name !== 'ask_user')
      .map(({ name }) => [name, { ms: limitOf(name).seconds * 1000, advice: limitOf(name).advice }]),
  )
}
