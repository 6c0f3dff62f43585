/** Shows an approval that waits: exactly what is asked, and the three answers. */

import { useState } from 'preact/hooks'
import type { Approval } from '../../../../control/contract/approval-shapes.ts'
import { counted } from '../../parts/fields.tsx'
import { decide } from '../actions.tsx'
import { Ago, At, IdLink, Keyed } from './bits.tsx'
import { Act, type BodyProps, Head } from './need-parts.tsx'
import { JsonBlock, PlainText } from './plain-text.tsx'

export function ApprovalNeed({ approval, marked, tag }: BodyProps & { readonly approval: Approval }) {
  const { approval_id, operation, reasoning, details, agent_id, role, task_id, created_at, expires_at, estimated_tokens } = approval
  const [note, setNote] = useState('')
  return (
    <>
      <Head tag={tag} title={<PlainText text={operation} />}>
        <Ago time={created_at} />
      </Head>
      {reasoning !== '' && (
        <p>
          <PlainText text={reasoning} />
        </p>
      )}
      {Object.keys(details).length > 0 && <JsonBlock of={details} label={`Details of ${approval_id}`} />}
      <p class="small quiet">
        <IdLink id={agent_id} />
        {role !== null && `, ${role}`}
        {task_id !== null && (
          <>
            {', '}
            <IdLink id={task_id} />
          </>
        )}
        {estimated_tokens > 0 && `, about ${counted(estimated_tokens, 'token')}`}. Without an answer by <At time={expires_at} /> it expires.{' '}
        <span class="mono">{approval_id}</span>
      </p>
      <div class="row">
        <Act of="y" marked={marked} main name={approval_id} act={() => decide(approval, 'approve', note)}>
          Approve
        </Act>
        <Act of="n" marked={marked} name={approval_id} act={() => decide(approval, 'reject', note)}>
          Deny
        </Act>
        <Revise id={approval_id} note={note} setNote={setNote} marked={marked} send={() => decide(approval, 'revise', note)} />
      </div>
    </>
  )
}

type ReviseProps = {
  readonly id: string
  readonly note: string
  readonly setNote: (note: string) => void
  readonly marked: boolean
  readonly send: () => Promise<boolean>
}

/** Enter in the note sends the approval back; an empty one would not say what to change. */
function Revise({ id, note, setNote, marked, send }: ReviseProps) {
  return (
    <form
      class="row grow"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <input
        data-key="v"
        class="grow"
        aria-label={`Note for ${id}`}
        placeholder="A note; needed to send it back"
        maxLength={4000}
        value={note}
        required
        onInput={(event) => setNote(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.closest<HTMLElement>('[data-mark]')?.focus()
        }}
      />
      <button type="submit">
        <Keyed of="v" marked={marked}>
          Send back<span class="hidden"> {id}</span>
        </Keyed>
      </button>
    </form>
  )
}
