/** Defines what provides further tools, and the runtime that executes the calls of a turn. */

import type { Config } from '../../config/config.ts'
import type { HomePaths } from '../../config/paths.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Act, AskLine, ChangePorts, Judge, Question, Tool } from '../../runtime/port.ts'
import type { SandboxKind, SandboxName } from '../../sandbox/contract.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import type { ExecutableHost } from '../../tools/executable/executable-tool.ts'
import type { Spawn } from '../../tools/process.ts'
import type { Workspace } from '../../workspace/contract.ts'
import type { Jobs } from './sandbox/jobs.ts'

/** A sandbox of its own for a tool. */
type ToolSandbox = {
  readonly spawn: Spawn
  /** Returns the sandbox that confines commands here; undefined when none works. */
  kind(): Promise<SandboxName | undefined>
  close(): void
}

/** Holds what foreign tools keep open between turns; the home, or else the conversation, closes it. */
export type GuestConnections = { mcp?: { close(): Promise<void> } }

/** The means of an external tool: confined child processes, and an environment without our variables. */
export type ToolDeps = Omit<ExecutableHost, 'workspace'> & {
  readonly maxOutputBytes: number
  /** Returns a sandbox with another workspace than that of the conversation. */
  readonly sandboxOn: (workspace: string) => ToolSandbox
  /** Aborts when the conversation is closed; what was started for it then ends. */
  readonly closed: AbortSignal
  /** Absent: any that works. */
  readonly sandbox?: SandboxKind
  readonly guests?: GuestConnections
  /** Asks the person; absent: nobody is there. */
  readonly ask?: AskLine | undefined
}

/** An external tool: its location, the SHA-256 of what runs, and a function that says why it may not run any more. */
export type SourcedTool = Tool & {
  readonly source: string
  readonly sha256: string
  changed(): string | undefined
  /** The hosts that it reaches besides those of the policy. */
  readonly hosts?: readonly string[]
  /** Set for a tool whose results are texts of others, and which no private view holds: says what it is. */
  readonly guest?: string
  /** The model is not told of it, but may call it: find_tools names it. */
  readonly isHidden?: true
}

/** Finds extra tools; called before each turn. It returns the same array while nothing has changed. */
export type ToolSource = (deps: ToolDeps) => Promise<readonly SourcedTool[]>

export type StandingSetup = { readonly config: Pick<Config, 'tools'>; readonly paths: Pick<HomePaths, 'home'> }

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
  /** Looks at the files that the tools may read. */
  readonly files: Pick<Workspace, 'stat' | 'walk'>
  /** Starts a program as the commands of the conversation are started. */
  readonly spawn: Spawn
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
