/** Answers "what needs me": the open questions with their exact plan or difference, then what runs. */

import { useEffect, useRef, useState } from 'preact/hooks'
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

/** A key pressed twice must not answer the next question, which nobody has read yet. */
const unseenMs = 400

/** Returns the id of the marked question. An answered one passes the mark to the question that takes its place. */
function useMark(): string | undefined {
  const waiting = approvals.value
  const [mark, setMark] = useState({ id: '', at: 0 })
  const answered = useRef(-unseenMs)
  const known = waiting.findIndex(({ id }) => id === mark.id)
  const at = known >= 0 ? known : Math.min(mark.at, waiting.length - 1)
  const current = waiting[at]
  useEffect(() => {
    const move = (to: number) => setMark({ id: waiting[to]?.id ?? '', at: to })
    const press = (event: KeyboardEvent) => {
      if (!current || event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return
      if (event.key === 'j') move(Math.min(at + 1, waiting.length - 1))
      else if (event.key === 'k') move(Math.max(at - 1, 0))
      else if ((event.key === 'y' || event.key === 'n') && may('approve')) {
        if (event.timeStamp - answered.current < unseenMs) return
        answered.current = event.timeStamp
        move(at)
        void decide(current, event.key === 'y' ? 'allow' : 'deny')
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [current?.id, at, waiting])
  return current?.id
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
