/** Answers "what needs me": the open questions with their exact plan or difference, then what runs. */

import { useMark } from '../parts/mark.ts'
import { decide, Question } from '../parts/question.tsx'
import { Empty, Facts } from '../parts/small.tsx'
import { approvals, may, status } from '../state.ts'
import { RunningNow } from './running.tsx'

export function Now() {
  const waiting = approvals.value
  const marked = useMarkedQuestion()
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

function useMarkedQuestion(): string | undefined {
  return useMark({
    ids: () => approvals.value.map(({ id }) => id),
    action: (key, id) => {
      const approval = approvals.value.find((each) => each.id === id)
      if (!approval || (key !== 'y' && key !== 'n') || !may('approve')) return undefined
      return () => void decide(approval, key === 'y' ? 'allow' : 'deny')
    },
  })
}
