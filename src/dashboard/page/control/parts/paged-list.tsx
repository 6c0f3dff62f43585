/** Shows a list that is loaded page by page, what went wrong with it, and a way to the older rows. */

import type { ComponentChildren } from 'preact'
import { Button, Empty } from '../../parts/small.tsx'
import type { Paged } from './paged.ts'

type Props = {
  readonly paged: Pick<Paged<unknown>, 'rows' | 'next' | 'error' | 'more' | 'again'>
  readonly empty: string
  readonly children: ComponentChildren
}

export function PagedList({ paged: { rows, next, error, more, again }, empty, children }: Props) {
  return (
    <>
      {error !== undefined && (
        <div class="card bad" role="alert">
          <p>{error}</p>
          <Button on={again}>Try again</Button>
        </div>
      )}
      {rows === undefined && error === undefined && (
        <p class="quiet" aria-busy="true">
          Loading
        </p>
      )}
      {rows !== undefined && (rows.length === 0 ? <Empty>{empty}</Empty> : children)}
      {typeof next === 'string' && <Button on={more}>Older</Button>}
    </>
  )
}
