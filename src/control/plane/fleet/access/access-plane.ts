/** Serves access: who has a secret, and the tokens of operators. */

import { signatureOf } from '../../../contract/caller.ts'
import type { AccessPlane } from '../../../contract/plane.ts'
import { onlyOperator } from '../../../contract/rights.ts'
import type { Command } from '../../../contract/store-port.ts'
import type { PlaneContext } from '../../context.ts'
import { first, text } from '../../row.ts'
import { callerOfSecret } from './caller-of.ts'
import { identityOf } from './identity-of.ts'
import { addOperator, firstOperator, listOperators, revokeOperator } from './operators.ts'

export function createAccessPlane(context: PlaneContext): AccessPlane {
  const { store } = context
  return {
    async callerOf(secret) {
      const found = await store.read(() => callerOfSecret(context, secret))
      const key = found?.usedKey
      if (key !== undefined) await store.write(() => noteUse(context, key))
      return found?.caller
    },
    identityOf: (caller) => identityOf(context, caller),
    operator: async (id) => await store.read(() => operatorInForce(id)),
    async operators(caller) {
      onlyOperator(caller, 'list operators')
      return await store.read(listOperators)
    },
    async newOperator(caller, name) {
      const actor = signatureOf(onlyOperator(caller, 'add an operator'))
      return await store.write(() => addOperator(context, { name, actor }))
    },
    async revokeOperator(caller, id) {
      onlyOperator(caller, 'revoke an operator')
      return await store.write(() => revokeOperator(context, { caller, id }))
    },
    firstOperator: async (name, secret) => await store.write(() => firstOperator(context, { name, secret })),
  }
}

type InForce = Awaited<ReturnType<AccessPlane['operator']>>

function* operatorInForce(id: string): Command<InForce> {
  const row = yield* first('SELECT name, digest FROM operators WHERE id = ? AND revoked_at IS NULL', [id])
  return row && { caller: { kind: 'operator', id, name: text(row, 'name') }, digest: text(row, 'digest') }
}

function* noteUse(context: PlaneContext, key: string): Command<void> {
  yield ['UPDATE agent_keys SET last_used_at = ? WHERE id = ?', [context.now(), key]]
}
