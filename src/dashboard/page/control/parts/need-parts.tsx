/** Shows what all entries of the page Now share: their first line, and buttons that a key presses. */

import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Keyed } from './bits.tsx'

export type BodyProps = { readonly marked: boolean; readonly tag: ComponentChildren }

export function Head({
  tag,
  title,
  children,
}: {
  readonly tag: ComponentChildren
  readonly title: ComponentChildren
  readonly children?: ComponentChildren
}) {
  return (
    <div class="row spread top">
      <div class="row grow">
        {tag}
        <strong class="breaks">{title}</strong>
      </div>
      <span class="quiet small">{children}</span>
    </div>
  )
}

type ButtonProps = {
  readonly of: string
  readonly marked: boolean
  readonly name: string
  readonly main?: boolean
  readonly act: () => Promise<boolean>
  readonly children: ComponentChildren
}

const answeredMs = 1_000

/** Acts once at a time; the second click of a double click may meet the entry that took the place of this one. */
export function Act({ of, marked, name, main = false, act, children }: ButtonProps) {
  const busy = useRef(false)
  async function press({ detail }: MouseEvent): Promise<void> {
    if (busy.current || detail > 1) return
    busy.current = true
    // What was done shows with its event, a moment later.
    const rest = (await act()) ? answeredMs : 0
    setTimeout(() => (busy.current = false), rest)
  }
  return (
    <button type="button" data-key={of} class={main ? 'main' : ''} onClick={(event) => void press(event)}>
      <Keyed of={of} marked={marked}>
        {children}
        <span class="hidden"> {name}</span>
      </Keyed>
    </button>
  )
}
