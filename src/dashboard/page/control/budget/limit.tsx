/** Shows one limit: what is spent and reserved of it, and a field to raise or lower it. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { whole } from '../../parts/fields.tsx'

type Scope = { readonly limit: number | null; readonly spent: number; readonly reserved: number; readonly remaining: number | null }
type Props = {
  readonly name: string
  readonly scope: Scope
  /** Absent: it is changed elsewhere. Null takes the limit away. */
  readonly set?: (tokens: number | null) => Promise<boolean>
  /** The person came for this one. */
  readonly asked?: boolean
  readonly at?: string
}

export function Limit({ name, scope: { limit, spent, reserved, remaining }, set, asked = false, at }: Props) {
  const isFull = remaining !== null && remaining <= 0
  return (
    <li class="limit">
      <div class="row spread">
        <strong class="breaks">{at === undefined ? name : <a href={at}>{name}</a>}</strong>
        <span class={isFull ? 'over' : 'quiet'}>
          {whole(spent)} spent{reserved > 0 && `, ${whole(reserved)} reserved`}
          {limit === null ? ', no limit' : ` of ${whole(limit)}`}
        </span>
      </div>
      {limit !== null && (
        <progress
          value={Math.min(spent + reserved, limit)}
          max={Math.max(limit, 1)}
          aria-label={`Used by ${name}`}
          class={isFull ? 'full' : ''}
        />
      )}
      {set && <Change key={String(limit)} name={name} limit={limit} asked={asked} set={set} />}
    </li>
  )
}

type ChangeProps = Pick<Props, 'name'> & { readonly limit: number | null; readonly asked: boolean; readonly set: NonNullable<Props['set']> }

function Change({ name, limit, asked, set }: ChangeProps) {
  const [text, setText] = useState(limit === null ? '' : String(limit))
  const field = useRef<HTMLInputElement>(null)
  const wanted = text.trim() === '' ? null : Number(text)
  useEffect(() => {
    if (!asked) return
    field.current?.focus()
    field.current?.select()
  }, [asked])
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault()
        void set(wanted)
      }}
    >
      <input
        ref={field}
        type="number"
        min={0}
        max={1e12}
        step={1}
        aria-label={`Tokens a day for ${name}; empty: no limit`}
        placeholder="no limit"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {limit !== null && (
        <>
          <button type="button" class="small" onClick={() => setText(String(Math.round(limit * 1.5)))}>
            + 50 %<span class="hidden"> for {name}</span>
          </button>
          <button type="button" class="small" onClick={() => setText(String(limit * 2))}>
            Double<span class="hidden"> for {name}</span>
          </button>
        </>
      )}
      <button type="submit" disabled={wanted === limit}>
        {limit === null ? 'Set' : wanted === null || wanted > limit ? 'Raise' : 'Lower'}
        <span class="hidden"> {name}</span>
      </button>
    </form>
  )
}
