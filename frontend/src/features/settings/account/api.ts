import { http } from "@/lib/http";

export const deleteAccount = (password: string) => http.post("/api/v1/auth/delete-account", { password });
