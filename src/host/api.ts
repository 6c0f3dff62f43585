/** What entrances see of the host: its context, the loaded setup, and a conversation. Types only. */

import type { Config, Origins } from '../config/config.ts'
import type { HomePaths } from '../config/paths.ts'
import type { Memory } from '../memory/memory.ts'
import type { Agent } from '../runtime/create-agent.ts'
import type { Proposal } from '../runtime/event.ts'
import type { AskLine, Log, Message, Provider } from '../runtime/port.ts'
import type { AnyUserThread } from '../runtime/threads/thread.ts'
import type { SandboxKind } from '../sandbox/confinement.ts'
import type { Redactor } from '../security/redaction/redact.ts'
import type { Hands, ToolWish } from './toolset/tool-selection.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

/** What a home and its conversations need of the process they run in. */
export type HostContext = {
  readonly env: Environment
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
  readonly origins: () => Origins
  readonly paths: HomePaths
  readonly log: Log
  readonly redactor: Redactor
  readonly context: Context
  /** The user's config file, absent when there is none yet. */
  readonly file?: string
  /** The variable that decided who answers, because nobody named a provider. */
  readonly assumed?: string
}

export type Wish = {
  readonly channel: string
  /** Absent when nobody is there to answer. */
  readonly ask?: AskLine
  /** `session`: that one, or a new one when there is none of that id. */
  readonly conversation:
    | { readonly kind: 'new' }
    | { readonly kind: 'latest' }
    | { readonly kind: 'resume'; readonly id: string }
    | { readonly kind: 'session'; readonly id?: string }
  /** Go on with a conversation although its record was altered; leaves a receipt that says so. */
  readonly acceptAltered?: boolean
  /** How commands are confined; `auto` when absent. */
  readonly sandbox?: SandboxKind
  /** Instead of the configured one. */
  readonly provider?: Provider
  /** A line for the person who began this conversation; absent: the log. */
  readonly tell?: (line: string) => void
  /** The ten tools when absent. */
  readonly tools?: ToolWish
  /** The developer's own b-threads. */
  readonly threads?: readonly AnyUserThread[]
  /** In place of all our own words, and without the project's: the model hears this alone. */
  readonly systemPrompt?: string
  /** In place of the first sentence of our own. */
  readonly soul?: string
  /** In place of the conversation's own past, asked afresh before each run. */
  readonly past?: () => Past | Promise<Past>
}

/** `soul` and `systemPrompt` as in Wish. */
export type Past = { readonly history: readonly Message[]; readonly soul?: string; readonly systemPrompt?: string }

/** An agent with its organs, for as long as its owner keeps it. */
export type Animal = {
  readonly agent: Agent
  /** `provider/model`. */
  readonly model: string
  readonly memory: Memory
  /** Real path. */
  readonly workspace: string
  /** Loaded by the first call: a turn that only talks does without. */
  hands(): Promise<Hands>
  /** See Hands. */
  allowAlways(proposal: Proposal): string | undefined
  isStanding(proposal: Proposal): boolean
  /** Has the older turns summarised when the conversation has become long; said through `tell` when it is. Never rejects. */
  makeRoom(options: { readonly tell: (line: string) => void; readonly signal: AbortSignal }): Promise<void>
  close(): void
}
