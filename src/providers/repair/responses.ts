/** Repairs replies of the Responses API: it completes calls that lack members, and drops unknown items from a complete answer. */

import { isObject } from '../../kit/json.ts'
import { isKeepAlive } from '../chat/shape.ts'
import { type Repair, type StreamRepair, textIn } from './repair.ts'

/** The items of an answer that we use. */
const items: ReadonlySet<unknown> = new Set(['message', 'reasoning', 'function_call'])

const ofItem: ReadonlySet<unknown> = new Set(['response.output_item.added', 'response.output_item.done'])

export function repairResponses(): StreamRepair {
  const repair: Repair = {
    event: (event) => (isKeepAlive(event) ? [] : [ofItem.has(event.type) ? { ...event, item: itemOf(event.item) } : event]),
    end: () => [],
    document(value) {
      if (!isObject(value) || !Array.isArray(value.output)) return value
      const output: readonly unknown[] = value.output
      return { ...value, output: output.filter((item) => isObject(item) && items.has(item.type)).map(itemOf) }
    },
  }
  return { repair, asItIs: (event) => !event.includes('"function_call"') && event.includes('"type":"response.') }
}

/** A call without a name is still a call: the runtime tells the model. */
function itemOf(item: unknown): unknown {
  if (!isObject(item) || item.type !== 'function_call') return item
  const callId = textIn(item.call_id) || textIn(item.id)
  const said = item.arguments ?? ''
  return {
    ...item,
    id: textIn(item.id) || callId,
    call_id: callId,
    name: textIn(item.name),
    arguments: typeof said === 'string' ? said : JSON.stringify(said),
    status: item.status ?? 'completed',
  }
}
