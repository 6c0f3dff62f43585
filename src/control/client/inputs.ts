/** Defines what a caller of the client may leave out because the daemon fills it in. */

/** `T` with the fields `Filled` optional. */
export type Input<T, Filled extends keyof T> = Omit<T, Filled> & Partial<Pick<T, Filled>>
