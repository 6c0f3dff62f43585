/** Pieces that the pages about records share: what a page is for, lists of words, fields of a form, numbers. */

import type { ComponentChildren, ComponentProps } from 'preact'
import { Select } from './small.tsx'

/** Shows the sentence that says which question a page answers. */
export function About({ children }: { readonly children: ComponentChildren }) {
  return <p class="about">{children}</p>
}

/** Shows a list of words that can be opened, after its length. */
export function Words({ name, of, open }: { readonly name: string; readonly of: readonly string[]; readonly open?: boolean }) {
  return (
    <details class="words" open={open}>
      <summary>
        {name} <span class="quiet">({of.length})</span>
      </summary>
      {of.length === 0 ? <p class="quiet">The list is empty.</p> : <Chips of={of} />}
    </details>
  )
}

export function Chips({ of }: { readonly of: readonly string[] }) {
  return (
    <ul class="chips">
      {of.map((word) => (
        <li key={word}>
          <code>{word}</code>
        </li>
      ))}
    </ul>
  )
}

type FieldProps = { readonly id: string; readonly label: string; readonly help?: string; readonly children: ComponentChildren }

/** The control inside has the same id, and `${id}-help` describes it when there is help. */
export function Field({ id, label, help, children }: FieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {help !== undefined && (
        <span id={`${id}-help`} class="quiet small">
          {help}
        </span>
      )}
    </div>
  )
}

type FieldOf<Control> = Control & Omit<FieldProps, 'children'>

/** Shows a field with one input, which its help describes. */
export function InputField({ id, label, help, ...input }: FieldOf<ComponentProps<'input'>>) {
  return (
    <Field id={id} label={label} help={help}>
      <input id={id} aria-describedby={help && `${id}-help`} {...input} />
    </Field>
  )
}

export function SelectField({ id, label, help, ...select }: FieldOf<ComponentProps<typeof Select>>) {
  return (
    <Field id={id} label={label} help={help}>
      <Select id={id} aria-describedby={help && `${id}-help`} {...select} />
    </Field>
  )
}

export function whole(count: number): string {
  return count.toLocaleString()
}

export function counted(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** A moment as the gateway writes it, in milliseconds since 1970. */
export function moment(iso: string): number {
  return Date.parse(iso)
}

/** The text fields of a form that are not empty. */
export function filled(form: HTMLFormElement): { readonly [name: string]: string } {
  const entries = [...new FormData(form)].flatMap(([name, value]) =>
    typeof value === 'string' && value.trim() !== '' ? [[name, value.trim()] as const] : [],
  )
  return Object.fromEntries(entries)
}

/** Passes the form to `act` instead of loading another page. */
export function submitBy(act: (form: HTMLFormElement) => unknown) {
  return (event: { readonly currentTarget: HTMLFormElement; preventDefault(): void }): void => {
    event.preventDefault()
    void act(event.currentTarget)
  }
}
