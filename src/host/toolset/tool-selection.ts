/** Defines which tools a turn may use, and the runtime that executes their calls. */

import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import type { HomePaths } from '../../config/paths.ts'
import { didYouMean } from '../../kit/text.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Act, ChangePorts, Judge, Log, Message, Provider, Question, Tool, ToolSpec } from '../../runtime/port.ts'
import type { SandboxName } from '../../sandbox/contract.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import type { ExecutableHost } from '../../tools/executable/executable-tool.ts'
import { toolKinds } from '../../tools/list.ts'
import type { Spawn } from '../../tools/process.ts'
import type { ShellTimes } from '../../tools/tool-kind.ts'
import type { Jobs } from './sandbox/jobs.ts'

/** A sandbox of its own for a tool. */
type ToolSandbox = {
  readonly spawn: Spawn
  /** Returns the sandbox that confines commands here; undefined when none works. */
  kind(): Promise<SandboxName | undefined>
  close(): void
}

/** The means of an external tool: confined child processes, and an environment without our variables. */
export type ToolDeps = Omit<ExecutableHost, 'workspace'> & {
  readonly maxOutputBytes: number
  /** Returns a sandbox with another workspace than that of the conversation. */
  readonly sandboxOn: (workspace: string) => ToolSandbox
  /** Aborts when the conversation is closed; what was started for it then ends. */
  readonly closed: AbortSignal
}

/** An external tool: its location, the SHA-256 of what runs, and a function that says why it may not run any more. */
export type SourcedTool = Tool & {
  readonly source: string
  readonly sha256: string
  changed(): string | undefined
  /** The hosts that it reaches besides those of the policy. */
  readonly hosts?: readonly string[]
}

/** Finds extra tools; called before each turn. It returns the same array while nothing has changed. */
export type ToolSource = (deps: ToolDeps) => Promise<readonly SourcedTool[]>

export type ToolSelection = {
  /** All built-in tools, some of them, or none. */
  readonly builtIn: 'all' | readonly string[]
  readonly more?: ToolSource
  /** Set by a caller with its own list of tools: refusals use the wording of that contract, "Tool not permitted". */
  readonly refusals?: 'not permitted'
}

export type ToolRuntime = {
  /** Every tool, allowed or not. */
  readonly all: readonly Tool[]
  readonly tools: readonly Tool[]
  readonly judge: Judge
  readonly act: Act
  readonly changes: ChangePorts
  readonly policy: Policy
  readonly gate: () => Promise<Gate>
  /** Loads the gate and creates the sandbox, so that the first call waits for neither. */
  prepare(): Promise<void>
  /** Stores an approval. @returns a sentence that says what is allowed from now on; undefined when no rule can be made of the call. */
  allowAlways(question: Question): string | undefined
  /** Tells whether an earlier "always" of this conversation covers the call. */
  isStanding(question: Question): boolean
  /** Returns what the call changed, or would change, in the workspace; undefined when nobody can tell, or when it would fail. */
  changesOf(question: Question): ChangeSet | undefined
  /** Looks for extra tools again; call it only between two runs. @returns the tools that are allowed now. */
  refresh(): Promise<readonly Tool[]>
  /** The commands in the background. */
  readonly jobs: Jobs
  close(): Promise<void>
}

export function hasTools({ builtIn, more }: ToolSelection): boolean {
  return builtIn.length > 0 || more !== undefined
}

/** Returns the file that names the approved plugins. */
export function approvedPlugins(home: string): string {
  return `${home}/plugins/approved.json`
}

type StandingTools = { readonly config: Pick<Config, 'tools'>; readonly paths: Pick<HomePaths, 'home'> }

/** Tells whether every turn offers more than the built-in tools: executables that the configuration names, or plugins. */
export function hasStandingTools({ config, paths }: StandingTools): boolean {
  return config.tools.executables.length > 0 || existsSync(approvedPlugins(paths.home))
}

export const builtInTools: ToolSelection = { builtIn: 'all' }

export type Limited = {
  readonly shellTimes: ShellTimes
  readonly toolsAllow?: readonly string[]
  readonly schedules?: boolean | undefined
  readonly more?: readonly ToolSpec[] | undefined
}

/** `toolsAllow` is the operator's list; a selection cannot go beyond it. */
export function builtInSpecs(
  { builtIn }: ToolSelection,
  { shellTimes, toolsAllow, schedules = false, more = [] }: Limited,
): readonly ToolSpec[] {
  return [...toolKinds.map((kind) => ({ ...kind, ...kind.limited?.(shellTimes) })), ...more]
    .filter(
      ({ name }) =>
        (builtIn === 'all' || builtIn.includes(name)) && (toolsAllow?.includes(name) ?? true) && (schedules || name !== 'schedule'),
    )
    .map(specOf)
}

/** Returns the names in the operator's list that are not built in. */
export function unknownNames(toolsAllow: readonly string[] = []): readonly string[] {
  return toolsAllow.filter((name) => !builtInNames.includes(name))
}

export const builtInNames: readonly string[] = [...toolKinds.map(({ name }) => name), 'discover']

export function specOf({ name, description, parameters }: ToolSpec): ToolSpec {
  return { name, description, parameters }
}

/** Warns about names in channels.cli.tools_allow that match no tool, which are most likely typing errors. */
export function warnOfUnknown(log: Log, names: readonly string[], known: readonly string[]): void {
  for (const name of names)
    if (!known.includes(name))
      log(
        'warn',
        `channels.cli.tools_allow names "${name}", which is not a tool${didYouMean(name, known) || `; there are: ${known.join(', ')}`}`,
      )
}

/** Replaces the start of `Denied by RULE: why` and `Denied: RULE: why` with `Tool not permitted: `. Other text stays unchanged. */
export function notPermitted(text: string): string {
  return text.replace(/^Denied(?: by|:) /, 'Tool not permitted: ')
}

/** Returns the same provider, which now receives refusals in the wording of the tool-loop contract, whoever runs the loop. */
export function withContractRefusals(provider: Provider): Provider {
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, messages: request.messages.map(plainRefusal) }, signal) }
}

function plainRefusal(message: Message): Message {
  return message.role === 'tool' && message.isError ? { ...message, content: notPermitted(message.content) } : message
}
