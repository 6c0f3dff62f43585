/** What the commands share: their surroundings, the loaded setup, and the animal that main.ts makes of it. */

import type { AskLine } from '../channels/ask.ts'
import type { Printer } from '../channels/printer.ts'
import type { StatusLine } from '../channels/status-line.ts'
import type { Config, Origins } from '../config/config.ts'
import type { HomePaths } from '../config/paths.ts'
import type { Memory } from '../memory/db.ts'
import type { Agent } from '../runtime/agent.ts'
import type { Proposal } from '../runtime/event.ts'
import type { Log, Message, Provider } from '../runtime/port.ts'
import type { SandboxKind } from '../sandbox/port.ts'
import type { Redactor } from '../security/redact.ts'
import type { Hands, ToolWish } from './tools/toolbox.ts'

export type Environment = Readonly<Partial<Record<string, string>>>

export type CliContext = {
  readonly process: {
    readonly stdout: Printer
    readonly stderr: Printer
    readonly env: Environment
    exitCode?: number | string | null
  }
  readonly env: Environment
  readonly cwd: string
  /** BRAIDCLAW_HOME (or SHELLCLAW_HOME), or ~/.braidclaw: everything we keep. */
  readonly home: string
  /** Knows the keys in the environment from the start; everything on stderr passes it, and whatever is stored. */
  readonly redactor: Redactor
  /** What is under way, at a terminal. */
  readonly status: StatusLine
  /** The reader of stdout went away: stop writing, stop working. */
  readonly outputClosed: () => boolean
  /** Why stdout could not be written, when it was not that its reader went away. */
  readonly outputFailure: () => string | undefined
  /** Why the keys that onboard kept are not used. */
  readonly keysProblem?: string
  /** main.ts plugs the organs together; commands that need them ask for it here. */
  readonly wake: Wake
}

export type Setup = {
  readonly config: Config
  /** Where each value comes from, by its key in the file. */
  readonly origins: () => Origins
  readonly paths: HomePaths
  readonly log: Log
  readonly redactor: Redactor
  readonly context: CliContext
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

/** @throws CliExit when memory, workspace, provider or conversation cannot be had; the message says what to do. */
export type Wake = (setup: Setup, wish: Wish) => Promise<Animal>
