/** Makes, lists and revokes the tokens of operators. */

import { sha256 } from '../../../../kit/sha256.ts'
import { type Caller, signatureOf } from '../../../contract/caller.ts'
import type { NewOperatorToken, OperatorToken } from '../../../contract/fleet-shapes.ts'
import { PlaneRefusal } from '../../../contract/plane-refusal.ts'
import type { Command, Row } from '../../../contract/store-port.ts'
import type { PlaneContext } from '../../context.ts'
import { recordEvent } from '../../events/record-event.ts'
import { amount, first, text, time, timeOrNull } from '../../row.ts'
import { newSecret, newSecretId } from './new-secret.ts'

export function* listOperators(): Command<readonly OperatorToken[]> {
  return (yield ['SELECT * FROM operators ORDER BY created_at, id']).map(operatorOf)
}

function operatorOf(row: Row): OperatorToken {
  return { id: text(row, 'id'), name: text(row, 'name'), created_at: time(row, 'created_at'), revoked_at: timeOrNull(row, 'revoked_at') }
}

type NewOperator = { readonly name: string; readonly actor: string; readonly secret?: string | undefined }

export function* addOperator(context: PlaneContext, { name, actor, secret }: NewOperator): Command<NewOperatorToken> {
  const made = secret === undefined ? newSecret(context, 'cpo') : { secret, digest: sha256(secret) }
  const row = yield* first('INSERT INTO operators (id, name, digest, created_at) VALUES (?, ?, ?, ?) RETURNING *', [
    newSecretId(context, 'op'),
    name,
    made.digest,
    context.now(),
  ])
  if (!row) throw new Error('INSERT … RETURNING answered no row')
  yield* recordEvent(context, { type: 'operator.added', actor, data: { id: text(row, 'id'), name } })
  return { ...operatorOf(row), token: made.secret }
}

/** @throws PlaneRefusal not_found; conflict for the last one */
export function* revokeOperator(
  context: PlaneContext,
  { caller, id }: { readonly caller: Caller; readonly id: string },
): Command<OperatorToken> {
  const row = yield* first('SELECT * FROM operators WHERE id = ?', [id])
  if (!row) throw new PlaneRefusal('not_found', `there is no operator "${id}"; "control operator list" shows them`)
  if (row.revoked_at !== null) return operatorOf(row)
  const others = yield* amount('SELECT COUNT(*) AS value FROM operators WHERE revoked_at IS NULL AND id <> ?', [id])
  if (others === 0) throw new PlaneRefusal('conflict', 'this is the last operator; add another one before you revoke it')
  const revoked = yield* first('UPDATE operators SET revoked_at = ? WHERE id = ? RETURNING *', [context.now(), id])
  yield* recordEvent(context, { type: 'operator.revoked', actor: signatureOf(caller), data: { id, name: text(row, 'name') } })
  return operatorOf(revoked ?? row)
}

/** @returns undefined when there is an operator already, or, with a secret, when it is in force; a revoked secret stays revoked */
export function* firstOperator(
  context: PlaneContext,
  { name, secret }: { readonly name: string; readonly secret?: string | undefined },
): Command<NewOperatorToken | undefined> {
  const exists =
    secret === undefined
      ? yield* amount('SELECT COUNT(*) AS value FROM operators WHERE revoked_at IS NULL')
      : yield* amount('SELECT COUNT(*) AS value FROM operators WHERE digest = ?', [sha256(secret)])
  return exists > 0 ? undefined : yield* addOperator(context, { name, actor: 'control plane', secret })
}
