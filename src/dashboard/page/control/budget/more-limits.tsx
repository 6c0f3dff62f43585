/** Limits a role that has no limit yet, and sets the time zone in which a day begins. */

import { Field } from '../../parts/fields.tsx'
import { roles } from '../control-state.ts'

type NewProps = { readonly known: readonly string[]; readonly set: (role: string, tokens: number) => Promise<boolean> }

export function NewRoleLimit({ known, set }: NewProps) {
  async function add(form: HTMLFormElement): Promise<void> {
    const data = new FormData(form)
    if (await set(String(data.get('role')).trim(), Number(data.get('tokens')))) form.reset()
  }
  return (
    <details>
      <summary>Limit another role</summary>
      <form
        class="fields"
        onSubmit={(event) => {
          event.preventDefault()
          void add(event.currentTarget)
        }}
      >
        <Field id="limit-role" label="Role">
          <input id="limit-role" name="role" list="limit-roles" required maxLength={64} />
        </Field>
        <Field id="limit-tokens" label="Tokens a day">
          <input id="limit-tokens" name="tokens" type="number" min={0} max={1e12} required />
        </Field>
        <datalist id="limit-roles">
          {roles.value
            .filter((role) => !known.includes(role))
            .map((role) => (
              <option key={role} value={role} />
            ))}
        </datalist>
        <button type="submit">Limit it</button>
      </form>
    </details>
  )
}

const zones = Intl.supportedValuesOf('timeZone')

export function Zone({ now, set }: { readonly now: string; readonly set: (zone: string) => Promise<boolean> }) {
  return (
    <details>
      <summary>Time zone</summary>
      <form
        key={now}
        class="fields"
        onSubmit={(event) => {
          event.preventDefault()
          void set(String(new FormData(event.currentTarget).get('zone')).trim())
        }}
      >
        <Field id="budget-zone" label="A day begins at midnight in">
          <input id="budget-zone" name="zone" list="budget-zones" required defaultValue={now} />
        </Field>
        <datalist id="budget-zones">
          {zones.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <button type="submit">Change it</button>
      </form>
    </details>
  )
}
