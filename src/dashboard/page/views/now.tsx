/** Answers "what needs me": the open questions with their exact plan or difference, then what runs. */

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { decide, Question } from '../parts/question.tsx'
import { Empty, Facts } from '../parts/small.tsx'
import { approvals, may, status } from '../state.ts'
import { RunningNow } from './running.tsx'

export function Now() {
  const waiting = approvals.value
  const marked = useMark()
  return (
    <>
      <h1>Now</h1>
      <section aria-label="Waiting for you">
        {waiting.length === 0 ? (
          <Empty>Nothing waits for you.</Empty>
        ) : (
          may('approve') && (
            <p class="quiet small keys">
              <kbd>y</kbd> allows and <kbd>n</kbd> denies the marked question; <kbd>j</kbd> and <kbd>k</kbd> move the mark.
            </p>
          )
        )}
        {waiting.map((approval) => (
          <Question key={approval.id} approval={approval} marked={approval.id === marked} />
        ))}
      </section>
      <RunningNow />
      {status.value && (
        <section aria-label="This home">
          <h2>This home</h2>
          <Facts
            of={[
              ['Model', `${status.value.provider}/${status.value.model}`],
              ['Autonomy', status.value.autonomy],
              ['Workspace', status.value.workspace],
              ['Channels', status.value.channels.join(', ') || 'none'],
              ['Receipts', String(status.value.receipts.count)],
              ['Version', status.value.version],
            ]}
          />
        </section>
      )}
    </>
  )
}

/** A question that takes the place of an answered one must not be answered by a key that was meant for that one. */
const unreadMs = 400

type Mark = { readonly id: string; readonly at: number }

/** Returns the id of the marked question. An answered one passes the mark to the question that takes its place. */
function useMark(): string | undefined {
  const mark = useSignal<Mark>({ id: '', at: 0 })
  const id = approvals.value[placeOf(mark.value)]?.id
  const shown = useRef(0)
  useLayoutEffect(() => {
    shown.current = performance.now()
  }, [id])
  useEffect(() => {
    // Reads the mark as it is now: two keys may come before the page is drawn again.
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return
      const at = placeOf(mark.value)
      const current = approvals.value[at]
      if (event.key === 'j') mark.value = markAt(at + 1)
      else if (event.key === 'k') mark.value = markAt(at - 1)
      else if (current && (event.key === 'y' || event.key === 'n') && may('approve')) {
        const isRead = current.id === mark.value.id || performance.now() - shown.current >= unreadMs
        if (!isRead) return
        mark.value = markAt(at)
        void decide(current, event.key === 'y' ? 'allow' : 'deny')
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return id
}

function placeOf({ id, at }: Mark): number {
  const known = approvals.value.findIndex((each) => each.id === id)
  return known >= 0 ? known : Math.min(at, approvals.value.length - 1)
}

function markAt(wanted: number): Mark {
  const at = Math.max(0, Math.min(wanted, approvals.value.length - 1))
  return { id: approvals.value[at]?.id ?? '', at }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
