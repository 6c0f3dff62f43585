/** Defines a tool that the calling program executes, and describes it to the host. It runs on Node too. */

import type { JsonObject, Risk } from '../../runtime/event.ts'
import type { Schema } from '../../runtime/port.ts'

/** The part of a zod schema (zod 4.2 or later) that a tool needs. */
export type ZodSchema = {
  toJSONSchema(options?: { readonly io?: 'input' | 'output' }): unknown
  safeParse(input: unknown): { readonly success: boolean; readonly data?: unknown; readonly error?: { readonly message: string } }
}

/** A tool of the calling program. A call passes the gate, is bounded as other tools are, and leaves a receipt. */
export type OwnTool = {
  /** A letter, then letters, digits, "_" and "-"; 64 characters at most; not the name of a built-in tool. */
  readonly name: string
  /** Tells the model in a sentence what the tool does. */
  readonly description: string
  /** A JSON Schema of an object, or a zod schema of one. */
  readonly parameters: Schema | ZodSchema
  /** Default `medium`: a supervised agent asks before the call. A `low` one runs unasked, so give it only to what has no effect. */
  readonly risk?: Risk
  /** Names a built-in tool of the agent, which has it in place of this one: the plain tools of braidclaw/tools do. */
  readonly builtin?: string
  /**
   * Runs one call. A text is the result as it is, anything else becomes JSON; an error that it throws becomes a failed result. `signal` aborts
   * on timeout, cancel and stop; `cwd` is the workspace.
   */
  execute(input: JsonObject, context: { readonly signal: AbortSignal; readonly cwd: string }): unknown
}

/** A tool as the host and the model see it. */
export type DescribedTool = { readonly name: string; readonly description: string; readonly parameters: Schema; readonly risk: Risk }

/** @throws Error when a zod schema cannot be written as JSON Schema, or the zod is too old to do it */
export function describeTool({ name, description, parameters, risk = 'medium' }: OwnTool): DescribedTool {
  if (isZod(parameters)) return { name, description, parameters: schemaOf(name, parameters), risk }
  if (typeof parameters === 'object' && parameters !== null && 'safeParse' in parameters)
    throw new Error(`tool "${name}": this zod cannot write its schemas as JSON Schema; use zod 4.2 or later, or give a JSON Schema`)
  return { name, description, parameters, risk }
}

/** Executes the tool with checked input. @throws Error when zod refuses the input, and what the tool throws */
export async function executeTool(
  { name, parameters, execute }: OwnTool,
  input: JsonObject,
  context: Parameters<OwnTool['execute']>[1],
): Promise<string> {
  const read = isZod(parameters) ? parameters.safeParse(input) : { success: true, data: input }
  if (!read.success) throw new Error(`the input does not fit the schema of "${name}": ${read.error?.message ?? 'zod refused it'}`)
  const result: unknown = await Reflect.apply(execute, undefined, [read.data, context])
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}

/** Tells whether these are a zod schema that can be written as JSON Schema. */
export function isZod(parameters: OwnTool['parameters']): parameters is ZodSchema {
  return typeof parameters === 'object' && parameters !== null && typeof parameters.toJSONSchema === 'function'
}

/** Returns what the schema says of the input. @throws Error when it is not one of an object */
export function schemaOf(name: string, parameters: ZodSchema): Schema {
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(parameters.toJSONSchema({ io: 'input' })))
  if (schema.type !== 'object') throw new Error(`tool "${name}": its parameters must be a schema of an object, such as z.object({ … })`)
  return { ...schema, type: 'object' }
}
