/** Answers "who may do all this": lists the tokens of operators, and makes and revokes them. */

import type { NewOperatorToken, OperatorToken } from '../../../../control/contract/fleet-shapes.ts'
import { About, filled, InputField, submitBy } from '../../parts/fields.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Submit, Tag } from '../../parts/small.tsx'
import { attempt, doing, me } from '../../state.ts'
import { plane, usePlane } from '../net/plane-live.ts'
import { confirmed, showOnce } from '../parts/ask.tsx'
import { At, NamedButton, Then } from '../parts/bits.tsx'
import { PlainText } from '../parts/plain-text.tsx'

export function OperatorsPage(_: { readonly rest: string }) {
  const found = usePlane<{ operators: readonly OperatorToken[] }>('operators', ({ type }) => type.startsWith('operator.'))
  async function add(form: HTMLFormElement): Promise<void> {
    const { name } = filled(form)
    await attempt(async () => {
      const { token } = await plane<NewOperatorToken>('POST', 'operators', { name })
      form.reset()
      found.again()
      await showOnce(`The token of ${name}`, token, 'It opens this page, and programs send it as a bearer token.')
    })
  }
  return (
    <>
      <h1>Operators</h1>
      <About>An operator may do everything here. Agents and their runs have keys of their own, which never reach these pages.</About>
      <Loaded from={found}>
        {({ operators }) => (
          <ul class="list" aria-label="Operators">
            {operators.map((operator) => (
              <Row key={operator.id} operator={operator} changed={found.again} />
            ))}
          </ul>
        )}
      </Loaded>
      <h2 id="add-title">Add an operator</h2>
      <form class="fields" aria-labelledby="add-title" onSubmit={submitBy(add)}>
        <InputField id="operator-name" label="Name" name="name" required maxLength={64} />
        <Submit>Make a token</Submit>
      </form>
    </>
  )
}

function Row({ operator, changed }: { readonly operator: OperatorToken; readonly changed: () => void }) {
  const { id, name, created_at, revoked_at } = operator
  const isMe = me.value?.name === name
  async function revoke(): Promise<void> {
    const body = <p>{isMe ? 'Your own token has this name: you may be logged out.' : 'Its sessions end at once.'}</p>
    if (!(await confirmed({ title: `Revoke the token of ${name}?`, body, act: 'Revoke the token', isDangerous: true }))) return
    await doing(`Revoked: ${name}`, () => plane('DELETE', `operators/${encodeURIComponent(id)}`))
    changed()
  }
  return (
    <li class="line">
      <span class="grow breaks">
        <strong>
          <PlainText text={name} />
        </strong>{' '}
        {isMe && <Tag>you</Tag>} {revoked_at !== null && <Tag kind="bad">revoked</Tag>}{' '}
        <span class="small quiet">
          <span class="mono">{id}</span>, made <At time={created_at} />
          <Then word="revoked" time={revoked_at} />
        </span>
      </span>
      {revoked_at === null && <NamedButton word="Revoke" name={name} on={revoke} />}
    </li>
  )
}
