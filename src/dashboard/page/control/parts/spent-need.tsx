/** Shows a limit of the day that is used up: its agents claim nothing more until it is raised or the next day begins. */

import type { Task } from '../../../../control/contract/task-shapes.ts'
import { counted, whole } from '../../parts/fields.tsx'
import { budget } from '../control-state.ts'
import { changeLimit, raised, type SpentLimit } from '../limits.tsx'
import { At, IdLink } from './bits.tsx'
import { Act, type BodyProps, Head } from './need-parts.tsx'
import { PlainText } from './plain-text.tsx'

type Props = BodyProps & { readonly of: SpentLimit; readonly tasks: readonly Task[] }

export function Spent({ of, tasks, marked, tag }: Props) {
  const { role, limit, spent } = of
  const now = budget.value
  const [first] = tasks
  const place = role === undefined ? '' : `/${encodeURIComponent(role)}`
  return (
    <>
      <Head tag={tag} title={role ?? 'All roles'} />
      <p>
        {whole(spent)} of {whole(limit)} tokens are spent today: {role === undefined ? 'no agent' : `no agent of ${role}`} gets another task
        before the limit is raised
        {now && (
          <>
            , or the next day begins <At time={now.next_day_at} />
          </>
        )}
        .
      </p>
      {first && (
        <p class="small">
          {counted(tasks.length, 'task')} without budget, first <IdLink id={first.task_id} /> <PlainText text={first.title} />
        </p>
      )}
      <div class="row">
        {now && (
          <Act of="b" marked={marked} main name={`for ${role ?? 'all roles'}`} act={() => changeLimit(now, role, raised(of))}>
            Raise to {whole(raised(of))}
          </Act>
        )}
        <a href={`#/budget${place}`}>Another limit</a>
      </div>
    </>
  )
}
