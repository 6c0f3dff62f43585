/** What a file of a built-in tool exports, and how it becomes a tool with what it may use of the world. */

import type { Json, JsonObject } from '../kit/json.ts'
import type { Schema, Tool, ToolContext, ToolResult } from '../runtime/port.ts'
import { fits } from '../security/fits.ts'

type ValueOf<P> = P extends { enum: readonly (infer Word)[] }
  ? Word
  : P extends { type: 'string' }
    ? string
    : P extends { type: 'integer' | 'number' }
      ? number
      : P extends { type: 'boolean' }
        ? boolean
        : Json

type Required<S> = S extends { required: readonly (infer Name)[] } ? Name : never

/** The arguments that a JSON Schema lets through. */
export type Args<S> = S extends { properties: infer P }
  ? { readonly [K in keyof P as K extends Required<S> ? K : never]: ValueOf<P[K]> } & {
      readonly [K in keyof P as K extends Required<S> ? never : K]?: ValueOf<P[K]>
    }
  : { readonly [name: string]: Json | undefined }

/** How long a command may take, in seconds: usually, and (a whole number) at most, when the call asks for its own limit. */
export type ShellTimes = { readonly usualS: number; readonly longestS: number }

type Spec = Pick<Tool, 'description' | 'parameters' | 'timeoutMs'>

/** `parameters` go to the model as they stand, at the head of what it may cache: not a byte of them changes by the way. */
export type ToolKind<S extends Schema = Schema, Deps = never> = Omit<Tool, 'parameters' | 'invoke'> & {
  readonly parameters: S
  /** The words and the schema with the operator's limits in them, so that a call cannot ask for more. */
  limited?(times: ShellTimes): Spec
  /** Loads what is heavy. */
  run(args: Args<S>, context: ToolContext, deps: Deps): Promise<ToolResult>
}

/** @throws TypeError (when it is invoked) for arguments that the schema does not let through: the gate was left out */
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
