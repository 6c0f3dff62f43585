/** Shows what an agent wrote into its session, as its next heartbeat will read it. */

import type { SessionLine } from '../../../../control/contract/run-shapes.ts'
import { whole } from '../../parts/fields.tsx'
import { Scroll } from '../../parts/small.tsx'
import { At } from '../parts/bits.tsx'
import { PlainText } from '../parts/plain-text.tsx'

export function SessionLines({ of }: { readonly of: readonly SessionLine[] }) {
  return (
    <Scroll label="Lines of the session">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Task</th>
            <th scope="col">Skill</th>
            <th scope="col">Outcome</th>
            <th scope="col" class="number">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {of.map(({ timestamp, task, skill, outcome, tokens_used }, at) => (
            <tr key={at}>
              <td>{Number.isNaN(Date.parse(timestamp)) ? <PlainText text={timestamp} /> : <At time={timestamp} />}</td>
              <td>
                <PlainText text={task} />
              </td>
              <td>
                <PlainText text={skill} />
              </td>
              <td>
                <PlainText text={outcome} />
              </td>
              <td class="number">{whole(tokens_used)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
