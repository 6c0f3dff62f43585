/** Keeps a receipt of each hostd operation that was proxied. */

import { signatureOf } from '../../contract/caller.ts'
import type { Plane } from '../../contract/plane.ts'
import type { Command } from '../../contract/store-port.ts'
import { nextId, numberOf, type PlaneContext } from '../command.ts'
import { recordEvent } from '../events/record-event.ts'

const mostOutput = 65_536

type Note = Plane['noteHostd']

export async function noteHostd(context: PlaneContext, caller: Parameters<Note>[0], call: Parameters<Note>[1]): Promise<void> {
  await context.store.write(() => keepCall(context, { caller, call }))
}

function* keepCall(
  context: PlaneContext,
  { caller, call }: { readonly caller: Parameters<Note>[0]; readonly call: Parameters<Note>[1] },
): Command<void> {
  const id = yield* nextId('hostd_calls')
  const taskId = caller.kind === 'run' ? numberOf(caller.taskId) : null
  const { op, params, ok, exitCode, output } = call
  // PostgreSQL keeps no NUL in a text.
  const kept = output.slice(0, mostOutput).replaceAll('\0', '\u{fffd}').toWellFormed()
  yield [
    'INSERT INTO hostd_calls (id, at, op, params, caller, ok, exit_code, output, task_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [id, context.now(), op, JSON.stringify(params), signatureOf(caller), ok ? 1 : 0, exitCode, kept, taskId],
  ]
  yield* recordEvent(context, {
    type: 'hostd.called',
    actor: signatureOf(caller),
    taskId,
    runId: caller.kind === 'run' ? numberOf(caller.runId) : null,
    agentId: caller.kind === 'run' || caller.kind === 'agent' ? caller.id : null,
    role: caller.kind === 'run' || caller.kind === 'agent' ? caller.role : null,
    data: { hostd_call: id, op, params, ok, exit_code: exitCode },
  })
}
