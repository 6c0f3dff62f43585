/** Tells whether a program serves a Unix socket, by connecting to it. */

/** Any answer but a refusal counts as served: what we cannot judge is not removed. */
export async function isServed(path: string): Promise<boolean> {
  try {
    const connection = await Bun.connect({ unix: path, socket: { data: () => undefined } })
    connection.terminate()
    return true
  } catch (error) {
    return !(error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT'))
  }
}
