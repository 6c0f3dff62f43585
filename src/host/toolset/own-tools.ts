/** Offers the tools of the calling program to a turn: the program executes them, so the gate judges them by their risk alone. */

import { errorText } from '../../kit/errors.ts'
import { sha256 } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import type { JsonObject, Risk } from '../../runtime/event.ts'
import type { ToolSpec } from '../../runtime/port.ts'
import { parseDescription } from '../../tools/executable/description.ts'
import { capText } from '../../tools/output-limit.ts'
import { done, fail } from '../../tools/tool-kind.ts'
import { FailureError } from '../failure.ts'
import { builtInNames, type SourcedTool, type ToolDeps, type ToolSelection } from './tool-selection.ts'

/** A tool that the calling program executes. `execute` rejects with the reason why a call failed. */
export type ProgramTool = ToolSpec & { readonly risk: Risk; execute(input: JsonObject, signal: AbortSignal): Promise<string> }

const risks: readonly Risk[] = ['low', 'medium', 'high']

/** The executor's own limit is shorter, so that its advice is shown. */
const longestMs = 24 * 60 * 60 * 1_000

/** Adds the tools to a selection. @throws FailureError `usage` that names the first tool that cannot be offered */
export function withProgramTools(selection: ToolSelection, given: readonly ProgramTool[]): ToolSelection {
  const prepared = given.map((tool, at) => prepare(tool, given.slice(0, at)))
  const state: { found: readonly SourcedTool[]; all?: readonly SourcedTool[] } = { found: [] }
  return {
    ...selection,
    async more(deps) {
      const found = (await selection.more?.(deps)) ?? state.found
      if (state.all !== undefined && found === state.found) return state.all
      const own = prepared.map((tool) => tool(deps))
      const twice = own.find(({ name }) => found.some((other) => other.name === name))
      if (twice) throw wrong(twice.name, 'an executable of tools.executables has that name; rename one of them')
      const all = [...found, ...own]
      Object.assign(state, { found, all })
      return all
    },
  }
}

function prepare(
  { execute, risk, ...spec }: ProgramTool,
  before: readonly ToolSpec[],
): (deps: Pick<ToolDeps, 'maxOutputBytes'>) => SourcedTool {
  const read = parseDescription(JSON.stringify(spec))
  if (!read.ok) throw wrong(spec.name, `it ${read.why.replace('printed no JSON object for --describe but', 'is not an object:')}`)
  const { name, description, parameters } = read.spec
  if (!risks.includes(risk))
    throw wrong(name, `its risk ${JSON.stringify(risk)} is not low, medium or high${didYouMean(String(risk), risks)}`)
  if (builtInNames.includes(name)) throw wrong(name, 'a built-in tool has that name; rename it')
  if (before.some((other) => other.name === name)) throw wrong(name, 'two tools have that name; rename one of them')
  return ({ maxOutputBytes }) => ({
    name,
    description,
    parameters,
    risk,
    source: 'program',
    sha256: sha256(JSON.stringify([name, description, parameters, risk])),
    changed: () => undefined,
    timeoutMs: longestMs,
    idempotent: false,
    touches: () => [],
    async invoke(input, { signal }) {
      try {
        return done(capText(await execute(input, signal), maxOutputBytes))
      } catch (error) {
        return fail(errorText(error))
      }
    },
  })
}

function wrong(name: unknown, why: string): FailureError {
  return new FailureError('usage', `tool ${JSON.stringify(name)} of the calling program is not offered: ${why}`)
}
