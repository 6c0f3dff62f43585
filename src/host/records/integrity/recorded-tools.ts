/**
 * Reconstructs the external tools of a past run as far as a gate knows them, so that its calls can be judged again without running
 * anything.
 */

import type { Config } from '../../../config/config.ts'
import { changesOf } from '../../../runtime/attempt/change-outcome.ts'
import { broughtBy } from '../../../runtime/behaviours/start-events.ts'
import type { Proposal } from '../../../runtime/event.ts'
import type { Tool } from '../../../runtime/port.ts'
import { type Entry, externalOf } from '../../../runtime/replay/external-entry.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { builtInNames } from '../../toolset/tool-selection.ts'

export type PastTools = {
  /** One tool for each name of the run that is not built in. */
  readonly tools: readonly Tool[]
  /** Judgements that do not depend on a policy, by call id: they hold under every policy. */
  readonly settled: ReadonlyMap<string, Proposal['judgement']>
}

/** The tool did not exist, had changed, or was called with invalid arguments. */
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

/** Returns how the run executed commands; undefined when none of its entries tells that a private view was used. */
export function pastCommands(entries: readonly Entry[]): CommandMode | undefined {
  return entries.some(wasOnView) ? { confined: true, transaction: true } : undefined
}

function wasOnView(entry: Entry): boolean {
  const event = externalOf(entry)
  if (event?.type === 'tool.changed') return true
  if (event?.type === 'tool.done') return event.outcome.metadata?.changes !== 'direct' && changesOf(event.outcome.metadata) !== undefined
  return proposalsOf(entry).some(({ judgement }) => judgement.rule === 'autonomy.transaction' || judgement.rule === 'autonomy.dropped')
}

function proposalsOf(entry: Entry): readonly Proposal[] {
  const event = externalOf(entry)
  return (event && broughtBy(event)) ?? []
}

/**
 * For executables and tools of a claw the gate knows only the operator's risk setting; the arguments were checked when the run took place.
 */
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
