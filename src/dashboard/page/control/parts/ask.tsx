/** Asks the person before something that is hard to undo, and shows a secret once. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../parts/small.tsx'

type Question = {
  readonly title: string
  readonly body: ComponentChildren
  /** The words of the button; absent: there is only "Close". */
  readonly act?: string
  readonly isDangerous?: boolean
  readonly answer: (yes: boolean) => void
}

const asked = signal<Question | undefined>(undefined)

/** Asks a question. Resolves with true when the person confirms. */
export function confirmed(question: Omit<Question, 'answer'>): Promise<boolean> {
  asked.value?.answer(false)
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (yes) => {
        asked.value = undefined
        resolve(yes)
      },
    }
  })
}

/** Shows a secret that nobody can see again. */
export async function showOnce(title: string, secret: string, use: ComponentChildren): Promise<void> {
  await confirmed({ title, body: <Secret text={secret} use={use} /> })
}

/** Copies the text, or selects it by `select` where the browser does not let a page copy. @returns what to tell the person */
export async function copied(text: string, select: () => void): Promise<string> {
  try {
    await navigator.clipboard.writeText(text)
    return 'Copied.'
  } catch {
    select()
    return 'The browser does not let this page copy the text. It is selected: press Ctrl+C.'
  }
}

function Secret({ text, use }: { readonly text: string; readonly use: ComponentChildren }) {
  const [said, setSaid] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const copy = async () => setSaid(await copied(text, () => field.current?.select()))
  return (
    <>
      <p>{use} It is shown only once; the control plane keeps only its SHA-256.</p>
      <div class="row">
        <input
          ref={field}
          class="grow mono"
          aria-label="The secret"
          readOnly
          value={text}
          onFocus={(event) => event.currentTarget.select()}
        />
        <Button word="Copy" kind="main" on={() => copy()} />
      </div>
      <p class="small quiet" role="status">
        {said}
      </p>
    </>
  )
}

/** Shows the open question; the frame contains it once. */
export function Asking() {
  const dialog = useRef<HTMLDialogElement>(null)
  const question = asked.value
  // Before the next key, which belongs to the dialog.
  useLayoutEffect(() => {
    if (!question) return
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [question])
  if (!question) return null
  const { title, body, act, isDangerous, answer } = question
  return (
    <dialog
      ref={dialog}
      aria-labelledby="ask-title"
      onCancel={(event) => {
        event.preventDefault()
        answer(false)
      }}
    >
      <h2 id="ask-title">{title}</h2>
      {body}
      <div class="row">
        {act !== undefined && <Button word={act} kind={isDangerous ? 'stop' : 'main'} on={() => answer(true)} />}
        <Button word={act === undefined ? 'Close' : 'Back'} on={() => answer(false)} />
      </div>
    </dialog>
  )
}
