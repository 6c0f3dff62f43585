/** The tools of a past run that were somebody else's, as far as a gate knows them; for judging its calls anew without running anything. */

import type { Config } from '../../config/config.ts'
import type { Proposal } from '../../runtime/event.ts'
import type { Tool } from '../../runtime/port.ts'
import { type Entry, externalOf } from '../../runtime/replay/journal-reader.ts'
import { builtInNames } from '../toolset/tool-selection.ts'

export type PastTools = {
  /** One for each name that is none of the ten and that the run had. */
  readonly tools: readonly Tool[]
  /** What was said of a call for reasons that are none of a policy's, by the id of the call: it holds under every policy. */
  readonly settled: ReadonlyMap<string, Proposal['judgement']>
}

/** The tool was not there, was another one by then, or was called wrongly. */
const beyondPolicy = ['tool.unknown', 'tool.changed', 'schema.invalid']

export function pastTools(entries: readonly Entry[], { security }: Config): PastTools {
  const past = entries.flatMap(proposalsOf)
  const own = past.filter(({ call, judgement }) => !builtInNames.includes(call.name) && judgement.rule !== 'tool.unknown')
  const names = [...new Set(own.map(({ call }) => call.name))]
  const settled = past.filter(({ judgement }) => beyondPolicy.includes(judgement.rule))
  return {
    tools: names.map((name) => standIn(name, security.allowTools.includes(name) ? 'low' : 'medium')),
    settled: new Map(settled.map(({ call, judgement }) => [call.id, judgement])),
  }
}

function proposalsOf(entry: Entry): readonly Proposal[] {
  const event = externalOf(entry)
  return event?.type === 'model.done' || event?.type === 'judged' ? event.proposals : []
}

/** Of an executable, and of a tool of a claw, the gate knows the operator's word alone; the arguments were checked in their time. */
function standIn(name: string, risk: Tool['risk']): Tool {
  return {
    name,
    description: '',
    parameters: { type: 'object' },
    risk,
    timeoutMs: 0,
    idempotent: false,
    touches: () => [],
    invoke: () => Promise.reject(new Error(`${name} stands in for a tool of the past, and is only judged`)),
  }
}
