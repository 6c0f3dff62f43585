/** What a frame shows until it follows the events of its server. */

import { useEffect, useState } from 'preact/hooks'

export function Waiting({ brand, what }: { readonly brand: string; readonly what: string }) {
  return (
    <main class="login">
      <h1>{brand}</h1>
      <p class="quiet working" role="status">
        {what}
      </p>
    </main>
  )
}

/**
 * Whether the events are followed: a page loads after that, so that nothing happens unseen in between. `begin` calls `connected` at each
 * connection, and returns what ends what it began besides.
 */
export function useFollowing(begin: (leaving: AbortSignal, connected: () => void) => () => void): boolean {
  const [isReady, setReady] = useState(false)
  useEffect(() => {
    const leaving = new AbortController()
    const end = begin(leaving.signal, () => setReady(true))
    return () => {
      leaving.abort()
      end()
    }
  }, [])
  return isReady
}
