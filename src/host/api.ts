/** What entrances see of the host: its context, the loaded setup, and a conversation. Types only. */

import type { Config, Origins } from '../config/config.ts'
import type { HomePaths } from '../config/paths.ts'
import type { ChannelRows } from '../config/table.ts'
import type { Rows, Values } from '../kit/settings.ts'
import type { Hit } from '../memory/conversations/search-turns.ts'
import type { AgentEvent, Ending, Mode, Proposal, Usage } from '../runtime/event.ts'
import type { AskLine, Decision, Log, Message, Provider, RunAgent } from '../runtime/port.ts'
import type { AnyUserThread } from '../runtime/threads/thread.ts'
import type { SandboxKind } from '../sandbox/confinement.ts'
import type { Redactor } from '../security/redaction/redact.ts'
import type { ToolRuntime, ToolSelection } from './toolset/tool-selection.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

/** What a home and its conversations need of the process they run in. */
export type HostContext = {
  readonly env: Environment
  /** The channels there are, each with the rows of its section. */
  readonly channels: readonly ChannelRows[]
  readonly cwd: string
  /** BRAIDCLAW_HOME (or SHELLCLAW_HOME), or ~/.braidclaw: everything we keep. */
  readonly home: string
  /** Knows the keys in the environment from the start; all that is logged, shown or stored passes it. */
  readonly redactor: Redactor
  /** Lines for whoever looks after this process, each with its end. */
  readonly say: (text: string) => void
  /** Why the keys that onboard kept are not used. */
  readonly keysProblem?: string
}

export type Setup<Context extends HostContext = HostContext> = {
  readonly config: Config
  /** Where each value comes from, by its key in the file. */
  readonly origins: Origins
  readonly paths: HomePaths
  readonly log: Log
  readonly redactor: Redactor
  readonly context: Context
  /** The user's config file, absent when there is none yet. */
  readonly file?: string
  /** The variable that decided who answers, because nobody named a provider. */
  readonly assumed?: string
}

/** `session`: that conversation, or a new one when there is none of that id; `called`: the one of that name, begun when it is first asked for. */
export type ConversationChoice =
  | { readonly kind: 'new' }
  | { readonly kind: 'latest' }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'session'; readonly id?: string }
  | { readonly kind: 'called'; readonly name: string }

export type ConversationOptions = {
  /** What receipts and `run list` show. */
  readonly channel: string
  /** Other settings than those of the host: another model, another workspace. Equal ones share provider, policy, rules and sandbox. */
  readonly setup?: Setup
  /** Absent when nobody is there to answer. */
  readonly ask?: AskLine
  /** Go on with a conversation although its record was altered; leaves a receipt that says so. */
  readonly acceptAltered?: boolean
  /** How commands are confined; `auto` when absent. */
  readonly sandbox?: SandboxKind
  /** Instead of the configured one. */
  readonly provider?: Provider
  /** A line for the person who began this conversation; absent: the log. */
  readonly tell?: (line: string) => void
  /** The ten tools when absent. */
  readonly tools?: ToolSelection
  /** The developer's own b-threads. */
  readonly threads?: readonly AnyUserThread[]
  /** In place of all our own words, and without the project's: the model hears this alone. */
  readonly systemPrompt?: string
  /** In place of the first sentence of our own. */
  readonly soul?: string
  /** In whose files its runs are told. */
  readonly agent?: RunAgent
  /** In place of the above and of the conversation's own past, asked afresh before each run. */
  readonly past?: () => Past | Promise<Past>
}

/** A conversation and how it is held, in one. */
export type ConversationRequest = ConversationOptions & { readonly conversation: ConversationChoice }

/** `soul` and `systemPrompt` as in ConversationOptions; without `history` the conversation has its own. */
export type Past = { readonly history?: readonly Message[]; readonly soul?: string; readonly systemPrompt?: string }

/** Opens no file, watch or child process of its own: thousands may be open. */
export type Conversation = {
  readonly id: string
  /** `provider/model`. */
  readonly model: string
  /** Real path. */
  readonly workspace: string
  /**
   * One turn. Yields until `done`; breaking out of the loop, or aborting `signal`, cancels it. One at a time: a second one yields the error
   * `busy` and ends, as one after `close` does with `closed`. With too many turns under way in this process it waits for its own.
   */
  run(message: string, signal?: AbortSignal): AsyncGenerator<AgentEvent>
  /** @returns undefined when the decision counted and is on disk, else the name of the rule that rejected it (late, unknown, used) */
  approve(gateId: string, decision: Decision): Promise<string | undefined>
  /** What an open gate asks about. */
  gate(gateId: string): Proposal | undefined
  /** Resolves when the question is no longer open, whoever answered it and however the turn ended. */
  gateClosed(gateId: string): Promise<void>
  setMode(change: { readonly newMode: Mode; readonly maxIterations?: number }): Promise<string | undefined>
  /**
   * A thread of the developer's, for the turn under way and all later ones.
   * @returns undefined when it takes part and that is on disk, else why it does not
   */
  addThread(thread: AnyUserThread): Promise<string | undefined>
  /** Ends the turn under way: nothing new begins, what runs is aborted. */
  cancel(by?: string): void
  /** How the latest turn ended; undefined while it runs. */
  ending(): Ending | undefined
  runId(): string | undefined
  usage(): Usage | undefined
  /** Questions of the latest turn that an operator can still answer, by their ids. */
  unanswered(): readonly string[]
  /** Remembers a yes for good. @returns what is allowed from now on, in words; undefined when no rule can be made of the call */
  allowAlways(proposal: Proposal): string | undefined
  /** Whether an earlier "always" of this conversation covers the call. */
  isStanding(proposal: Proposal): boolean
  /** The tools and the gate before them, loaded when asked for. */
  tools(): Promise<Pick<ToolRuntime, 'tools' | 'policy' | 'refresh'>>
  search(request: { readonly query: string; readonly limit?: number }): readonly Hit[]
  /** Has the older turns summarised when the conversation has become long; said through `tell` when it is. Never rejects. */
  compact(options: { readonly tell: (line: string) => void; readonly signal: AbortSignal }): Promise<void>
  /** Cancels the turn under way, and resolves when that has ended. */
  close(): Promise<void>
}

/** A question that waits for an answer. `id` is RUN/CALL. */
export type OpenQuestion = { readonly id: string; readonly conversationId: string; readonly proposal: Proposal }

/** A past run again, from its journal alone. `digest` is that of `run show`; `ended` says whether the journal holds its end. */
export type ReplayedRun = {
  readonly runId: string
  readonly events: readonly AgentEvent[]
  readonly digest: string
  readonly ended: boolean
}

/** A home, opened once a process for all who use it: database, writer, stop watch, sandboxes, providers, approvals. */
export type Host = {
  readonly setup: Setup
  /** @throws FailureError when workspace, provider or conversation cannot be had; the message says what to do */
  conversation(which: ConversationChoice, options: ConversationOptions): Promise<Conversation>
  /** All conversations of this home and process. */
  readonly questions: () => readonly OpenQuestion[]
  /** Of the conversation that was used last in another folder, when none was begun in this one. */
  latestElsewhere(folder: string): { readonly id: string; readonly says: string } | undefined
  /** @throws FailureError error for a run that is not there, or without the threads that it had; integrity where it was altered */
  replay(wanted: string, threads: readonly AnyUserThread[]): Promise<ReplayedRun>
  /** Cancels what runs in this host's conversations, waits for it at most so long, and lets go of the home: the last one closes its files. */
  close(graceMs?: number): Promise<void>
}

/** A message from outside, whichever way it came, and the way back for its answer. */
export type InboundMessage = {
  /** Whom the answer goes to: the channel of the wire, or of Discord. */
  readonly channel: string
  readonly text: string
  /** Where it came from, for the log. */
  readonly from: string
  /** Messages of one name are answered one after the other, those of another beside them. Absent: the agent's own conversation. */
  readonly conversation?: string
  /** Who wrote it, when that person may answer questions; absent: may not. */
  readonly approver?: string
  /** Somebody who may answer questions reads this channel. */
  readonly asks?: boolean
  /** Called when its turn has come, with the id of the conversation that it is taken in. */
  taken?(conversationId: string): void
  /** Never rejects; what could not be delivered is in the log. */
  answer(text: string): Promise<void>
  /** Somebody is at work on it, where that can be shown. */
  working?(): void
}

/** What a channel that hears messages gets of the host. */
export type ChannelHost = Host & {
  /** Takes a message over, to be answered in its conversation when its turn has come. */
  receive(message: InboundMessage): void
}

/** Where people or programs talk to agents. */
export type Channel = {
  readonly name: string
  /** Resolves when `signal` is aborted and nothing more is heard, or when the channel has ended by itself. Rejects with what ended it. */
  start(host: ChannelHost, signal: AbortSignal): Promise<void>
  /** @throws Error that says what kept it from delivering */
  send(conversationId: string, message: string): Promise<void>
  supportsDraftUpdates(): boolean
}

/** One that holds its conversations itself, because somebody is there who began it: the terminal, the filter. */
export type AttendedChannel = Omit<Channel, 'start'> & { start(host: Host, signal: AbortSignal): Promise<void> }

/** A line of channels/list.ts. */
export type ChannelKind<R extends Rows = Rows> = {
  readonly name: string
  /** The rows of [channels.NAME]. */
  readonly settings: R
  /** Without it the others do not go on. */
  readonly vital?: true
  isOn(settings: Values<R>): boolean
  /** Loads what is heavy. `dir`: the folder of the FIFOs. @throws FailureError for what is wrong before anything is tried */
  create(making: { readonly settings: Values<R>; readonly setup: Setup; readonly dir: string }): Promise<Channel>
}
