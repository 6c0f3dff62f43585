/**
 * Declares the types that entrances share with the host: its context, the loaded setup and conversations. Channels:
 * channels/inbox/channel-api.ts.
 */

import type { Config, Origins } from '../config/config.ts'
import type { HomePaths } from '../config/paths.ts'
import type { ChannelRows } from '../config/table.ts'
import type { TokenTable } from '../memory/access-tokens.ts'
import type { Compaction } from '../memory/conversations/compact.ts'
import type { Hit } from '../memory/conversations/search-turns.ts'
import type { ReplyTable } from '../memory/replies.ts'
import type { ChangeSet } from '../runtime/changes.ts'
import type { Agent } from '../runtime/create-agent.ts'
import type { AgentEvent, Call, Continued, Proposal } from '../runtime/event.ts'
import type { AskLine, CheckPort, Log, Message, Picture, Prompt, Provider, Question, RunAgent, ToolSpec } from '../runtime/port.ts'
import type { PreparedThread } from '../runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from '../runtime/threads/thread.ts'
import type { SandboxKind } from '../sandbox/contract.ts'
import type { Redactor } from '../security/redaction/redact.ts'
import type { SetSummary } from '../workspace/changes/contract.ts'
import type { ChangeStore } from '../workspace/changes/store.ts'
import type { ChannelProfile } from './access/channel-profile.ts'
import type { Budget } from './access/cost/budget.ts'
import type { CostQuery, CostReport } from './access/cost/cost.ts'
import type { ClaimMark } from './contract/claim-mark.ts'
import type { HostRecords } from './contract/records-api.ts'
import type { Schedules } from './contract/schedules-api.ts'
import type { EventHub } from './events/host-event.ts'
import type { Telemetry } from './events/telemetry/open-telemetry.ts'
import type { ToolRuntime, ToolSelection } from './toolset/contract.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

/** Provides what a home and its conversations need from their process. */
export type HostContext = {
  readonly env: Environment
  /** The available channels, each with the rows of its configuration section. */
  readonly channels: readonly ChannelRows[]
  readonly cwd: string
  /** BRAIDCLAW_HOME (or SHELLCLAW_HOME), or ~/.braidclaw: the folder of all our files. */
  readonly home: string
  /** Knows the keys of the environment from the start; everything that is logged, shown or stored passes through it. */
  readonly redactor: Redactor
  /** Writes lines for the person who operates this process; each line includes its newline. */
  readonly say: (text: string) => void
  /** The version of the program, for the record of its runs. */
  readonly version?: string | undefined
  /** Why the keys that `onboard` stored are not used. */
  readonly keysProblem?: string
}

export type Setup<Context extends HostContext = HostContext> = {
  readonly config: Config
  /** Maps each key of the file to the source of its value. */
  readonly origins: Origins
  readonly paths: HomePaths
  readonly log: Log
  readonly redactor: Redactor
  readonly context: Context
  /** The user's config file; absent when it does not exist yet. */
  readonly file?: string
  /** The variable that decided the provider, because nobody named one. */
  readonly assumed?: string
  /** Says which model a server was found to have, because nobody named one. */
  readonly found?: string
  /** Rules of the calling program besides the operator's, as JSON in the format of the rule files. */
  readonly ownRules?: readonly unknown[]
  /** The channel whose limits `config` already has; absent for the operator's own conversations. */
  readonly access?: ChannelProfile
  /**
   * Returns the security settings that are others now than when the configuration was loaded; undefined while none of its files, nor of the
   * rules, changed. @throws FailureError when it cannot be loaded any more
   */
  readonly changed?: () => Partial<Config['security']> | undefined
}

/**
 * `session`: the conversation of that id, or a new one when it does not exist; `called`: the conversation of that name, created on first
 * use.
 */
export type ConversationChoice =
  | { readonly kind: 'new' }
  | { readonly kind: 'latest' }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'session'; readonly id?: string }
  | { readonly kind: 'called'; readonly name: string }

export type ConversationOptions = {
  /** The channel name that receipts and `run list` show. */
  readonly channel: string
  /**
   * Settings that differ from those of the host, such as another model or workspace. Conversations with equal settings share provider,
   * policy, rules and sandbox.
   */
  readonly setup?: Setup
  /** The limits of the channel that the conversation belongs to; absent: the operator's own rights. */
  readonly access?: ChannelProfile
  /** Absent when nobody can answer. */
  readonly ask?: AskLine
  /** Continues a conversation although its record was altered; this leaves a receipt. */
  readonly acceptAltered?: boolean
  /** How commands are confined; default: `auto`. */
  readonly sandbox?: SandboxKind
  /** Commands run on private views that are never applied, and tools that write do not run. */
  readonly dryRun?: true
  /** Replaces the configured provider. */
  readonly provider?: Provider
  /** A budget that its model calls share with other conversations. */
  readonly budget?: Budget
  /** Receives lines for the person who began this conversation; absent: they go to the log. */
  readonly tell?: (line: string) => void
  /** Default: the built-in tools. */
  readonly tools?: ToolSelection
  /** The developer's own b-threads. */
  readonly threads?: readonly PreparedThread[]
  /** The checks that end wiggum runs; absent: `setMode` rejects that mode. */
  readonly checks?: CheckPort
  /** Replaces our whole system prompt and the project's instructions: the model gets only this text. */
  readonly systemPrompt?: string
  /** Replaces the first sentence of our system prompt. */
  readonly soul?: string
  /** The agent whose files get the log of the runs. */
  readonly agent?: RunAgent
  /** Replaces the history, soul and system prompt above; called before each run with the most tokens that a history may have. */
  readonly past?: (historyTokens: number) => Past | Promise<Past>
}

/** The choice of a conversation together with its options. */
export type ConversationRequest = ConversationOptions & { readonly conversation: ConversationChoice }

/** `soul` and `systemPrompt` as in ConversationOptions; without `history` the conversation uses its own. */
export type Past = { readonly history?: readonly Message[]; readonly soul?: string; readonly systemPrompt?: string }

/** The parts of a request before its message: those of the system prompt with their names, the tools, the history. */
export type RequestParts = {
  readonly sections: readonly (readonly [name: string, text: string])[]
  readonly tools: readonly ToolSpec[]
  readonly history: readonly Message[]
}

/** A conversation opens no file, watcher or child process of its own, so thousands may be open. */
export type Conversation = Pick<
  Agent,
  'approve' | 'gate' | 'gateClosed' | 'setMode' | 'addThread' | 'steer' | 'cancel' | 'ending' | 'runId' | 'usage' | 'context'
> & {
  readonly id: string
  /** `provider/model`. */
  readonly model: string
  /** Real path. */
  readonly workspace: string
  /**
   * Runs one turn. It yields until `done`; breaking out of the loop, or aborting `signal`, cancels the turn. A conversation runs one turn
   * at a time: a second one yields the error `busy` and ends; a turn after `close` does the same with `closed`. The turn waits while too
   * many turns run in this process. With `continues` it continues an interrupted turn; see `InterruptedTurn.continueWith`.
   */
  run(message: Prompt, signal?: AbortSignal, continues?: Continued, start?: TurnStart): AsyncGenerator<AgentEvent>
  /** Returns the commands of the person's own, of the project and of its skills; undefined when there are none. */
  commands(): Promise<SlashCommands | undefined>
  /** Returns the last turn when it can continue, else the reason why it cannot. */
  interrupted(): Promise<InterruptedTurn | string>
  /** Returns what an open question asks to change in the workspace; undefined when it is about something else than files. */
  changesOf(gateId: string): Promise<ChangeSet | undefined>
  /** The ids of the latest turn's questions that an operator can still answer. */
  unanswered(): readonly string[]
  /**
   * Stores a permanent approval. @returns a sentence that says what is allowed from now on; undefined when no rule can be made of the call
   */
  allowAlways(question: Question): string | undefined
  /** Tells whether an earlier "always" of this conversation covers the call. */
  isStanding(question: Question): boolean
  /** The tools and their gate, loaded on first use. */
  tools(): Promise<Pick<ToolRuntime, 'tools' | 'policy' | 'refresh' | 'files'>>
  /** The commands in its background; undefined before the first call of a tool. */
  jobs(): BackgroundJobs | undefined
  search(request: { readonly query: string; readonly limit?: number }): Promise<readonly Hit[]>
  /**
   * Summarises the older turns when the conversation has become long, and announces that through `tell`; with `now` all but the latest turn,
   * however short they are, and `keep` says what must stay. Returns undefined when there is nothing to do. Never rejects.
   */
  compact(options: {
    readonly tell: (line: string) => void
    readonly signal: AbortSignal
    readonly now?: { readonly keep: string }
  }): Promise<Compaction | undefined>
  /** Returns what the next request holds before its message, and the tokens that the model can take. */
  requestParts(): Promise<RequestParts & { readonly window: number }>
  /**
   * Reads the text of pictures with the vision helper, as many as `vision.max_images`; from then on the conversation has read content of
   * others. Never rejects.
   */
  readPictures(pictures: readonly Picture[], signal: AbortSignal): Promise<readonly PictureText[]>
  /**
   * Marks the claims of the latest turn's answer by what its record proves; none when `proof_of_done` is off, or the answer claims nothing.
   * Never rejects.
   */
  proof(answer: string | undefined): Promise<readonly ClaimMark[]>
  /** Returns the model that answers here, for calls outside of any turn: each is recorded, and reserves budget. */
  sideModel(): Promise<Provider>
  /** Records that the next message has content of others, for the rules that watch where data goes. */
  readsUntrusted(): Promise<void>
  /** Cancels the running turn, and resolves when it has ended. */
  close(): Promise<void>
}

/** `usage` is the command with a hint at its arguments; `source` is the file that it comes from. */
export type SlashCommand = Readonly<Record<'name' | 'usage' | 'description' | 'source', string>>

/**
 * How a turn begins. `allowedTools`: nothing else may be called in it, in the words of SKILL.md. `calls`: the person makes them, through the
 * same gate, before the model is asked; with `asksNoModel` they are the whole turn.
 */
export type TurnStart = {
  readonly allowedTools?: readonly string[] | undefined
  readonly calls?: readonly Pick<Call, 'name' | 'input'>[]
  readonly asksNoModel?: true
}

/** The turn that a command begins. */
export type SlashTurn = Pick<TurnStart, 'allowedTools'> & { readonly prompt: string }

export type SlashCommands = {
  readonly list: readonly SlashCommand[]
  /** Returns undefined for a line that is no command. @throws FailureError `usage` for the name of a command that is misspelled */
  turnOf(line: string): SlashTurn | undefined
}

/** A turn that can continue at its first step without a receipt. */
export type InterruptedTurn = {
  /** How many of its calls have ended. */
  readonly calls: number
  /** Names the outside cause; undefined when a limit or the provider ended it. */
  readonly diedOf: string | undefined
  /** The calls that nobody may repeat unasked: they had begun, and whether they happened is unknown. */
  readonly unknown: readonly Proposal[]
  /**
   * Returns what `run` takes to continue. `answers`, by call id: the call was done, runs again, or is left out; without an answer the model is
   * asked to check.
   */
  continueWith(answers: ReadonlyMap<string, 'done' | 'again' | 'skip'>): { readonly prompt: string; readonly continues: Continued }
}

export type PictureText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string }

/** A question that is open. `id` is RUN/CALL. */
export type OpenQuestion = { readonly id: string; readonly conversationId: string; readonly proposal: Proposal }

/**
 * A replay of a past run from its journal alone. `digest` is the one that `run show` prints; `ended` says whether the journal contains the
 * end of the run.
 */
export type ReplayedRun = {
  readonly runId: string
  readonly events: readonly AgentEvent[]
  readonly digest: string
  readonly ended: boolean
}

export type ChangeDecision = {
  /** The name of this action in the receipts. */
  readonly tool: `changes.${string}`
  readonly set: SetSummary
  readonly paths?: readonly string[] | undefined
}

export type KeptChanges = {
  readonly store: ChangeStore
  /** Does what the person decided, and leaves a receipt of it. @throws FailureError before it, when no receipt can be written */
  withReceipt<Done extends { readonly ok: boolean }>(what: ChangeDecision, act: () => Promise<Done>): Promise<Done>
}

/** The commands in the background of a conversation, for a person. */
type BackgroundJobs = Pick<ToolRuntime['jobs'], 'list' | 'end'>

/** A home, opened once per process for all users: database, writer, emergency-stop watcher, sandboxes, providers, approvals. */
export type Host = {
  readonly setup: Setup
  /** @throws FailureError when workspace, provider or conversation cannot be used; the message says what to do */
  conversation(which: ConversationChoice, options: ConversationOptions): Promise<Conversation>
  /** The open questions of all conversations of this home in this process. */
  readonly questions: () => readonly OpenQuestion[]
  /** The events of all runs of this home, of this process and of others, and notices about everything else that happens in it. */
  readonly events: EventHub
  /** Reads the records of this home and takes decisions about them, besides conversations; loaded on first use. */
  records(): Promise<HostRecords>
  /** Returns what commands and file tools of this home changed; opened on first use. */
  changes(): Promise<KeptChanges>
  /** Loaded on first use. */
  schedules(): Promise<Schedules>
  /** Returns what model calls have cost. @throws FailureError `usage` for a query that makes no sense */
  cost(query: CostQuery): Promise<CostReport>
  /** Begins to count and to trace what runs of this home do; loaded only by servers. Close it before the host. */
  telemetry(version: string): Promise<Telemetry>
  /** The most recently used conversation of another folder, when this folder has none. */
  latestElsewhere(folder: string): { readonly id: string; readonly says: string } | undefined
  /** The access tokens of this home, and which conversation belongs to which. */
  readonly tokens: TokenTable
  /** The answers to requests that may be sent again. */
  readonly replies: ReplyTable
  /** How many receipts there are, and the hash of the last one; undefined before the first. */
  receipts(): { readonly count: number; readonly head: string } | undefined
  /** Cancels a run of this host, whatever channel began it. @returns false when no such run is under way here */
  cancelRun(runId: string, by: string): boolean
  /** Returns the commands in the background of a conversation that is open in this process. */
  jobs(conversationId: string): BackgroundJobs | undefined
  /** Returns the id of a conversation. `ref`: its id, the beginning of it, its name, or "last". @throws FailureError `error` when there is none */
  resolveConversation(ref: string): string
  /** Returns whether the conversation has a turn. */
  hasConversation(id: string): boolean
  /** @throws FailureError `error` when the run does not exist or its threads are missing; `integrity` when it was altered */
  replay(ref: string, threads: readonly AnyUserThread[]): Promise<ReplayedRun>
  /**
   * Cancels the running turns of this host, waits at most `graceMs` milliseconds for them, and releases the home: the last user closes its
   * files.
   */
  close(graceMs?: number): Promise<void>
}
