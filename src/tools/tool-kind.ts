/** Defines what the file of a built-in tool exports, combines it with its dependencies into a tool, and builds the results that tools return, with how their children ran. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { Schema, Tool, ToolContext, ToolResult } from '../runtime/port.ts'
import { fits } from '../security/arguments/fits.ts'
import type { FileRefusal } from '../workspace/contract.ts'
import type { Spawn, SpawnResult } from './process.ts'

type ValueOf<P> = P extends { enum: readonly (infer Word)[] }
  ? Word
  : P extends { type: 'string' }
    ? string
    : P extends { type: 'integer' | 'number' }
      ? number
      : P extends { type: 'boolean' }
        ? boolean
        : Json

type Required<S> = S extends { required?: infer Names extends readonly string[] } ? Names[number] : never

/** The type of the arguments that a JSON Schema accepts. */
type Args<S> = S extends { properties: infer P }
  ? { readonly [K in keyof P as K extends Required<S> ? K : never]: ValueOf<P[K]> } & {
      readonly [K in keyof P as K extends Required<S> ? never : K]?: ValueOf<P[K]>
    }
  : { readonly [name: string]: Json | undefined }

/** Time limits of a command in seconds: the usual one, and the longest one (a whole number) that a call may request. */
export type ShellTimes = { readonly usualS: number; readonly longestS: number }

type Spec = Pick<Tool, 'description' | 'parameters' | 'timeoutMs'>

/** `parameters` go to the model unchanged, at the start of the text that the vendor may cache, so their bytes must stay constant. */
export type ToolKind<S extends Schema = Schema, Deps = never> = Omit<Tool, 'parameters' | 'invoke'> & {
  readonly parameters: S
  /** Returns the description and the schema with the operator's limits in them, so that a call cannot request more. */
  limited?(times: ShellTimes): Spec
  /** Loads heavy modules lazily. */
  run(args: Args<S>, context: ToolContext, deps: Deps): Promise<ToolResult>
}

/** @throws TypeError (when invoked) for arguments that the schema refuses, because this means that the gate was skipped */
export function toolFrom<Deps>(kind: ToolKind<Schema, Deps>, deps: Deps, times?: ShellTimes): Tool {
  const { run, limited, ...spec } = kind
  const tool = { ...spec, ...(times ? limited?.(times) : {}) }
  return {
    ...tool,
    async invoke(input: JsonObject, context) {
      if (!fits(tool.parameters, input)) throw new TypeError(`unchecked arguments for "${tool.name}": ${JSON.stringify(input)}`)
      return await run(input, context, deps)
    },
  }
}

/** Reads an argument for `touches`, which must answer for any input, also one that the schema refuses. */
export function textOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

export function done(output: string, metadata?: JsonObject): ToolResult {
  return { success: true, output, metadata }
}

export function fail(error: string, output = ''): ToolResult {
  return { success: false, output, error }
}

/** Turns a refusal of the workspace or the network into a result. */
export function refused({ denied, message, shown }: Pick<FileRefusal, 'denied' | 'message' | 'shown'>): ToolResult {
  return { ...fail(message), ...(denied === undefined ? shown : { deniedBy: denied }) }
}

type Ran = Extract<SpawnResult, { ok: true }>

/** Tells how the children of a call ran. `view` holds their changes; its receiver applies or drops it. `dropped`: it was dropped already. */
export type Confined = Pick<Ran, 'sandbox' | 'view'> & { readonly mode?: Ran['mode'] | 'dropped' }

/** A symbol, because text that a foreign program prints can become a member of `metadata` but never this key. */
export const confinedBy = Symbol('confinedBy')

export type SandboxedResult = ToolResult & { readonly [confinedBy]?: Confined }

/** The key is absent when the call started no child. One program confines all its children in the same way. */
export async function recordSandbox(spawn: Spawn, run: (spawn: Spawn) => Promise<ToolResult>): Promise<SandboxedResult> {
  const seen: { confined?: Ran } = {}
  const result = await run(async (plan) => {
    // The changes of two commands of one call could contradict each other.
    if (seen.confined?.view !== undefined && plan.view === 'private') return { ok: false, message: 'a call runs one command that writes' }
    const ended = await spawn(plan)
    if (ended.ok && ended.sandbox !== undefined) seen.confined = ended
    return ended
  })
  return seen.confined === undefined ? result : sandboxed(result, seen.confined)
}

/** Adds how a command ran in the background, where no call waited for it. */
export function sandboxed(result: ToolResult, ended: SpawnResult): SandboxedResult {
  if (!ended.ok || ended.sandbox === undefined) return result
  return { ...result, [confinedBy]: { sandbox: ended.sandbox, mode: ended.mode, view: ended.view } }
}
