/** Asks for a token once; the browser then keeps a session that scripts cannot read. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { connection } from '../net/live.ts'
import type { Me } from '../shapes.ts'
import { me, textOf } from '../state.ts'

export function Login() {
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const token = String(new FormData(form).get('token') ?? '').trim()
    setBusy(true)
    try {
      await call('POST', '/session', { token })
      connection.value = 'off'
      me.value = await call<Me>('GET', '/session')
    } catch (error) {
      setProblem(textOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login">
      <h1>BraidClaw</h1>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          <label for="token">Access token</label>
          <input
            id="token"
            name="token"
            type="password"
            ref={field}
            autocomplete="current-password"
            required
            aria-describedby="token-help"
          />
        </p>
        <p id="token-help" class="quiet small">
          Of a control plane: the operator token that <code>braidclaw control init</code> showed and keeps in{' '}
          <code>control/operator.token</code>. Of any other server: make one on its machine with{' '}
          <code>braidclaw token new me --scope admin</code>.
        </p>
        {problem !== '' && (
          <p class="banner" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="main" disabled={busy}>
          Log in
        </button>
      </form>
    </main>
  )
}
