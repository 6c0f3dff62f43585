/** Which tools a turn may use, and what stands behind them once a call has come. */

import type { Proposal } from '../../runtime/event.ts'
import type { Act, Judge, Tool, ToolSpec } from '../../runtime/port.ts'
import type { Gate } from '../../security/gate.ts'
import type { Policy } from '../../security/policy.ts'
import { toolKinds } from '../../tools/list.ts'
import type { Environment, Spawn } from '../../tools/process.ts'
import type { ShellTimes } from '../../tools/tool-kind.ts'

/** What a tool of somebody else's may use: confined children, and nothing of ours in their environment. */
export type ToolDeps = { readonly spawn: Spawn; readonly env: Environment; readonly maxOutputBytes: number }

/** A tool of somebody else's: where it lies, the SHA-256 of what runs, and why it may not run any more. */
export type SourcedTool = Tool & { readonly source: string; readonly sha256: string; changed(): string | undefined }

/** Finds more tools; asked before each turn. The same array as before means that nothing has changed. */
export type ToolSource = (deps: ToolDeps) => Promise<readonly SourcedTool[]>

export type ToolSelection = {
  /** All ten, some of them, or none. */
  readonly builtIn: 'all' | readonly string[]
  readonly more?: ToolSource
  /** A model with a list of tools of its own is told of a refusal in the words of that contract: "Tool not permitted". */
  readonly refusals?: 'not permitted'
}

export type ToolRuntime = {
  /** Every tool, allowed here or not. */
  readonly all: readonly Tool[]
  readonly tools: readonly Tool[]
  readonly judge: Judge
  readonly act: Act
  readonly policy: Policy
  readonly gate: () => Promise<Gate>
  /** Remembers a yes for good. @returns what is allowed from now on, in words; undefined when no rule can be made of the call. */
  allowAlways(proposal: Proposal): string | undefined
  /** Whether an earlier "always" of this conversation covers the call. */
  isStanding(proposal: Proposal): boolean
  /** Looks for further tools again. @returns those that are allowed now; between two runs only. */
  refresh(): Promise<readonly Tool[]>
  close(): void
}

export function hasTools({ builtIn, more }: ToolSelection): boolean {
  return builtIn.length > 0 || more !== undefined
}

export const builtInTools: ToolSelection = { builtIn: 'all' }

export type Limited = { readonly shellTimes: ShellTimes; readonly toolsAllow?: readonly string[] }

/** `toolsAllow` is the operator's list; whatever is wished for, nothing beyond it. */
export function builtInSpecs({ builtIn }: ToolSelection, { shellTimes, toolsAllow }: Limited): readonly ToolSpec[] {
  return toolKinds
    .map((kind) => ({ ...kind, ...kind.limited?.(shellTimes) }))
    .filter(({ name }) => (builtIn === 'all' || builtIn.includes(name)) && (toolsAllow?.includes(name) ?? true))
    .map(specOf)
}

/** Those of the operator's list that are none of the ten. */
export function unknownNames(toolsAllow: readonly string[] = []): readonly string[] {
  return toolsAllow.filter((name) => !builtInNames.includes(name))
}

export const builtInNames: readonly string[] = toolKinds.map(({ name }) => name)

export function specOf({ name, description, parameters }: ToolSpec): ToolSpec {
  return { name, description, parameters }
}
